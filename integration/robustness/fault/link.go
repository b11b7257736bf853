package fault

import (
	"context"
	"fmt"
	"time"

	"taskledger/integration/robustness/cluster"
	"taskledger/internal/testcluster"
)

// reach is which links of a node a fault disturbs.
type reach func(cluster.Links) []*testcluster.Link

func toEtcd(l cluster.Links) []*testcluster.Link { return l.ToEtcd }
func toNATS(l cluster.Links) []*testcluster.Link { return []*testcluster.Link{l.ToNATS} }
func toAll(l cluster.Links) []*testcluster.Link  { return l.All() }

// Ways that nothing passes.
var (
	bothWays     = []testcluster.Direction{testcluster.Forth, testcluster.Back}
	requestsOnly = []testcluster.Direction{testcluster.Forth}
	repliesOnly  = []testcluster.Direction{testcluster.Back}
)

// partition lets nothing pass on links of a node. What was sent meanwhile arrives afterwards.
func partition(to reach, ways []testcluster.Direction) func(context.Context, *cluster.Cluster, disturbance) (string, string, error) {
	return func(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
		proof = d.disturbLinks(ctx, to, func(l *testcluster.Link) { l.Hold(ways...) })
		return d.node.Name, proof, nil
	}
}

// delayLinks makes everything that a node sends and hears late.
func delayLinks(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	c := testcluster.Condition{Latency: time.Duration(5+d.random.IntN(60)) * time.Millisecond, Jitter: 100 * time.Millisecond}
	proof = d.disturbLinks(ctx, toAll, func(l *testcluster.Link) {
		l.Set(testcluster.Forth, c)
		l.Set(testcluster.Back, c)
	})
	return fmt.Sprintf("%s, by %s to %s", d.node.Name, c.Latency, c.Latency+c.Jitter), proof, nil
}

// loseConnections makes the connections of a node half-open: neither end is told. They stay so until the nodes
// find out, or are stopped; new ones work.
func loseConnections(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	return d.node.Name, d.disturbLinks(ctx, toAll, (*testcluster.Link).Lose), nil
}

// disturbLinks gives links of the node a condition for a while, and tells how much it kept.
func (d disturbance) disturbLinks(ctx context.Context, to reach, condition func(*testcluster.Link)) (proof string) {
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
