package fault

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
)

// calm is the time between two rounds.
const calm = time.Second

// Disturb goes through a plan, again and again, until every round was and the time is over. Each round waits for traffic to
// flow.
func Disturb(ctx context.Context, r *cluster.Cluster, p Plan) {
	r.WarmUp(ctx)
	end := time.Now().Add(r.Settings.Duration)
	for i := 0; ctx.Err() == nil && (time.Now().Before(end) || i < len(p) && time.Now().Before(end.Add(PlanWithin))); i++ {
		makeRound(ctx, r, i+1, p[i%len(p)])
		cluster.Sleep(ctx, calm)
		r.WarmUp(ctx)
	}
}

// inVain marks the kind of a fault that did not bite beside another one.
const inVain = ", in vain"

// makeRound makes the disturbances of a round, and returns when all have ended. One that did not bite beside another is made again,
// alone.
func makeRound(ctx context.Context, r *cluster.Cluster, number int, round []*Kind) {
	disturbances, again, made := make([]func(), len(round)), make([]func(), len(round)), make([]history.Fault, len(round))
	for i, f := range round {
		d := disturbance{random: rand.New(rand.NewPCG(r.Random.Uint64(), 0)), duration: f.least, alone: len(round) == 1, round: number}
		if f.most > f.least {
			d.duration += time.Duration(r.Random.Int64N(int64(f.most - f.least)))
		}
		switch f.scope {
		case oneNode:
			d.node = claim(r, f)
		case oneClient:
			d.client = freeClient(r, r.Random)
			d.client.Claimed = true
		}
		after := time.Duration(i) * time.Duration(r.Random.Int64N(int64(calm)))
		disturbances[i] = func() {
			cluster.Sleep(ctx, after)
			made[i] = inflict(ctx, r, f, d)
		}
		again[i] = func() {
			vain := made[i]
			vain.Kind, vain.Proof = vain.Kind+inVain, "it was made again, alone"
			r.NoteFault(vain)
			d.alone = true
			r.WarmUp(ctx)
			made[i] = inflict(ctx, r, f, d)
		}
	}
	var inForce sync.WaitGroup
	for _, disturb := range disturbances {
		inForce.Go(disturb)
	}
	inForce.Wait()
	for i := range round {
		if made[i].Proof == "" && len(round) > 1 && ctx.Err() == nil { // beside the other one it had nothing to bite
			again[i]()
		}
		r.NoteFault(made[i])
	}
	for _, n := range r.Nodes {
		n.Claimed = false
	}
	for _, c := range r.Clients {
		c.Claimed = false
	}
}

// freeClient draws a client that no fault of the round has claimed.
func freeClient(r *cluster.Cluster, random *rand.Rand) *cluster.Client {
	free := slices.DeleteFunc(slices.Clone(r.Clients), func(c *cluster.Client) bool { return c.Claimed })
	return free[random.IntN(len(free))]
}

// claim draws a node that no other fault of the round has: to be killed, one with work, if any has.
func claim(r *cluster.Cluster, f *Kind) *cluster.Node {
	free := slices.DeleteFunc(slices.Clone(r.Nodes), func(n *cluster.Node) bool { return n.Claimed })
	idle := func(n *cluster.Node) bool { return r.Executions.RunningOn(n.SessionID(), history.Since(r.Begin)) == 0 }
	if busy := slices.DeleteFunc(slices.Clone(free), idle); f.Name == history.KillKind && len(busy) > 0 {
		free = busy
	}
	n := free[r.Random.IntN(len(free))]
	n.Claimed = true
	return n
}

// inflict makes one disturbance. A process that does not serve is damage, any other error a reason to reject.
func inflict(ctx context.Context, r *cluster.Cluster, f *Kind, d disturbance) (h history.Fault) {
	h = history.Fault{Kind: f.Name, Round: d.round}
	d.begins = func() { h.From, h.InFlight = history.Since(r.Begin), r.InFlight() }
	d.begins()
	var err error
	h.Target, h.Proof, err = f.inflict(ctx, r, d)
	h.Until = history.Since(r.Begin)
	if err != nil && !errors.Is(err, cluster.ErrIdle) {
		r.Problem("fault %s of %s: %v", f.Name, h.Target, err)
	}
	return h
}
