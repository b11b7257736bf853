package fault

import (
	"context"
	"fmt"
	"time"

	"taskledger/integration/robustness/cluster"
	"taskledger/internal/link"
)

// reach is which links of a node a fault disturbs.
type reach func(cluster.Links) []*link.Link

func toEtcd(l cluster.Links) []*link.Link { return l.ToEtcd }
func toNATS(l cluster.Links) []*link.Link { return []*link.Link{l.ToNATS} }
func toAll(l cluster.Links) []*link.Link  { return l.All() }

// Ways that nothing passes.
var (
	bothWays     = []link.Direction{link.Forth, link.Back}
	requestsOnly = []link.Direction{link.Forth}
	repliesOnly  = []link.Direction{link.Back}
)

// partition lets nothing pass on links of a node. What was sent meanwhile arrives afterwards.
func partition(to reach, ways []link.Direction) func(context.Context, *cluster.Cluster, disturbance) (string, string, error) {
	return func(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
		proof = d.disturbLinks(ctx, to, func(l *link.Link) { l.Hold(ways...) })
		return d.node.Name, proof, nil
	}
}

// delayLinks makes everything that a node sends and hears late.
func delayLinks(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	c := link.Condition{Latency: time.Duration(5+d.random.IntN(60)) * time.Millisecond, Jitter: 100 * time.Millisecond}
	proof = d.disturbLinks(ctx, toAll, func(l *link.Link) {
		l.Set(link.Forth, c)
		l.Set(link.Back, c)
	})
	return fmt.Sprintf("%s, by %s to %s", d.node.Name, c.Latency, c.Latency+c.Jitter), proof, nil
}

// loseConnections makes the connections of a node half-open: neither end is told. They stay so until the nodes
// find out, or are stopped; new ones work.
func loseConnections(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	return d.node.Name, d.disturbLinks(ctx, toAll, (*link.Link).Lose), nil
}

// disturbLinks gives links of the node a condition for a while, and tells how much it kept.
func (d disturbance) disturbLinks(ctx context.Context, to reach, condition func(*link.Link)) (proof string) {
	var affected int64
	for _, l := range to(d.node.Links) {
		affected -= l.Affected()
		condition(l)
	}
	cluster.Sleep(ctx, d.duration)
	for _, l := range to(d.node.Links) {
		l.Clear()
		affected += l.Affected()
	}
	if affected == 0 {
		return ""
	}
	return fmt.Sprintf("%d bytes were kept back, delayed or lost", affected)
}
