package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/namespace"
)

// fault is one kind of disturbance.
type fault struct {
	name  string
	scope scope
	needs cluster.Need
	// least and most are how long it is in force; what takes its own time ignores them.
	least, most time.Duration
	// inflict disturbs, ends the disturbance, and returns what was disturbed and what shows that it was; no proof means
	// that nothing does. An error means that the run is broken. It must heal when ctx ends, too.
	inflict func(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error)
}

// disturbance is one case of a fault.
type disturbance struct {
	duration time.Duration
	random   *rand.Rand
	node     *cluster.Node   // that is claimed for it; nil unless the scope is oneNode
	client   *cluster.Client // that is claimed for it; nil unless the scope is oneClient
	alone    bool            // no other one is in force
	round    int
	begins   func() // says that it begins only now: what came before was waiting
}

// scope is what a fault disturbs: two faults at a time never have the same, but for two nodes or two clients. What faults
// change of nodes, clients and servers needs no lock beside that.
type scope int

const (
	nothing scope = iota // that another one could disturb
	oneNode
	oneClient
	allNodes
	etcd
	nats
	everything // but clients
	everybody  // everything, and clients
)

// faults is every kind, in the order in which --all-faults takes them, two at a time.
var faults = []fault{
	{history.KillKind, oneNode, 0, 0, 3 * time.Second, killNode},
	{"compaction", etcd, 0, 2 * time.Second, 4 * time.Second, compact},
	{"node-pause-long", oneNode, cluster.NeedProc, cluster.TTL + 1500*time.Millisecond, 2*cluster.TTL + time.Second, pauseNode},
	{"nats-restart", nats, cluster.NeedNATS, time.Second, 3 * time.Second, restartNATS},
	{"node-pauses-short", oneNode, cluster.NeedProc, 3 * time.Second, 5 * time.Second, pauseNodeShortly},
	{"etcd-leader-kill", etcd, 0, time.Second, 3 * time.Second, killLeader},
	{"node-starve", oneNode, cluster.NeedProc, 3 * time.Second, 5 * time.Second, starveNode},
	{"writes-lost-and-late", nothing, cluster.NeedWrites, 3 * time.Second, 6 * time.Second, loseWrites},
	{"partition-node-etcd", oneNode, 0, 2 * time.Second, 6 * time.Second, partition(toEtcd, bothWays)},
	{"nats-slow-consumer", nats, cluster.NeedTight, 3 * time.Second, 5 * time.Second, slowConsumer},
	{"partition-node-all", oneNode, 0, 2 * time.Second, 6 * time.Second, partition(toAll, bothWays)},
	{"etcd-member-restart", etcd, 0, time.Second, 2 * time.Second, restartMember},
	{"replies-lost", oneNode, 0, 2 * time.Second, 5 * time.Second, partition(toAll, repliesOnly)},
	{"defragmentation", etcd, 0, 2 * time.Second, 4 * time.Second, defragment},
	{"requests-lost", oneNode, 0, 2 * time.Second, 5 * time.Second, partition(toAll, requestsOnly)},
	{"bus-doubled-and-late", nats, cluster.NeedNATS, 3 * time.Second, 6 * time.Second, disturbBus},
	{cluster.StepKind, oneNode, 0, 2 * time.Second, 5 * time.Second, stepClock},
	{"etcd-leader-pause-short", etcd, cluster.NeedProc, 500 * time.Millisecond, 2500 * time.Millisecond, pauseLeader},
	{"partition-node-nats", oneNode, cluster.NeedNATS, 2 * time.Second, 5 * time.Second, partition(toNATS, bothWays)},
	{"etcd-leader-pause-long", etcd, cluster.NeedProc, cluster.TTL + time.Second, cluster.TTL + 3*time.Second, pauseLeader},
	{"half-open-links", oneNode, 0, 2 * time.Second, 4 * time.Second, loseConnections},
	{"etcd-majority-loss", etcd, 0, 2 * time.Second, 4 * time.Second, loseMajority},
	{"latency", oneNode, 0, 3 * time.Second, 6 * time.Second, delayLinks},
	{"etcd-minority-with-clients", etcd, cluster.NeedMembers, 2 * time.Second, 5 * time.Second, isolateMember},
	{"bus-forged", nats, cluster.NeedNATS, 2 * time.Second, 4 * time.Second, forgeMessages},
	{"etcd-full", etcd, cluster.NeedQuota, time.Second, 3 * time.Second, fillEtcd},
	{"rolling-restart", allNodes, 0, 0, 0, restartNodes},
	{"nats-absent", nats, cluster.NeedAbsent, 4 * time.Second, 6 * time.Second, noNATS},
	{"packets-lost-node-etcd", oneNode, cluster.NeedNamespace, 2 * time.Second, 6 * time.Second, losePackets(toEtcd, bothWays)},
	{"packets-lost-to-servers", oneNode, cluster.NeedNamespace, 2 * time.Second, 5 * time.Second, losePackets(toAll, requestsOnly)},
	{"packets-lost-node-all", oneNode, cluster.NeedNamespace, 2 * time.Second, 6 * time.Second, losePackets(toAll, bothWays)},
	{"packets-lost-node-nats", oneNode, cluster.NeedNamespace | cluster.NeedNATS, 3 * time.Second, 6 * time.Second, losePackets(toNATS, bothWays)},
	{"packets-lost-from-servers", oneNode, cluster.NeedNamespace, 2 * time.Second, 5 * time.Second, losePackets(toAll, repliesOnly)},
	{"client-kill", oneClient, 0, 0, 3 * time.Second, killClient},
	{history.BusAwayKind, nats, cluster.NeedNATS | cluster.NeedSmall, 65 * time.Second, 80 * time.Second, restartNATS},
	{"pause-and-restart", everything, 0, 0, 0, pauseAndRestart},
	{"limits-and-restart", everything, cluster.NeedLimits, 0, 0, limitsAndRestart},
	{"quarantine-and-restart", everything, 0, time.Second, 2 * time.Second, quarantineAndRestart},
	{cluster.UnseenKind, everything, 0, 3 * time.Second, 6 * time.Second, jumpUnseen},
	{history.QuietKind, everybody, 0, 2 * time.Minute, 2*time.Minute + 10*time.Second, beQuiet},
	{"servers-elsewhere", nothing, 0, 0, 0, moveServers},
	{"alien-entry", everything, 0, time.Second, 2 * time.Second, alienEntry},
	{"meta-removed", everything, 0, time.Second, 2 * time.Second, removeMeta},
	{"owner-key-damaged", everything, 0, time.Second, 2 * time.Second, damageOwner},
	{"node-key-damaged", everything, 0, time.Second, 2 * time.Second, damageNode},
	{"owner-key-of-no-shard", everything, 0, time.Second, 2 * time.Second, strayOwner},
	{"client-pause", oneClient, cluster.NeedProc, time.Second, cluster.TTL + time.Second, pauseClient},
}

func faultNamed(name string) (*fault, bool) {
	i := slices.IndexFunc(faults, func(f fault) bool { return f.name == name })
	if i < 0 {
		return nil, false
	}
	return &faults[i], true
}

// clashes reports whether two faults cannot be in force at a time.
func (f *fault) clashes(other *fault) bool {
	if f.scope == everybody || other.scope == everybody {
		return true
	}
	if f.scope == oneNode || other.scope == oneNode {
		wide := []scope{allNodes, everything}
		return slices.Contains(wide, f.scope) || slices.Contains(wide, other.scope)
	}
	if f.scope == oneClient || other.scope == oneClient {
		return false
	}
	if f.scope == everything || other.scope == everything {
		return true
	}
	return f.scope == other.scope && (f.scope != nothing || f == other)
}

// long reports whether the fault takes minutes.
func (f *fault) long() bool { return f.least >= time.Minute }

// cannot says why the fault is impossible on this machine, in a run of so many members; "" when it is possible.
func (f *fault) cannot(members int) string {
	if f.needs&cluster.NeedMembers != 0 && members < 3 {
		return fmt.Sprintf("takes three members of etcd, not %d", members)
	}
	if _, err := os.Stat("/proc/self/stat"); f.needs&cluster.NeedProc != 0 && err != nil {
		return fmt.Sprintf("takes the state of processes: %v", err)
	}
	if err := namespace.Cannot(); f.needs&cluster.NeedNamespace != 0 && err != nil {
		return fmt.Sprintf("takes network namespaces: %v", err)
	}
	return ""
}

// plan is which faults a history has: rounds, one after another, of one or two at a time.
type plan [][]*fault

const (
	// roundTakes is about how long a round takes, with the time before the next one.
	roundTakes = 6 * time.Second
	// maxRounds is how many rounds a plan drawn by the seed has at most. With many more, every history would have all that
	// some fault needs.
	maxRounds = 4
	// planWithin is how much longer than it was asked to a history goes on until its plan is done: one fault that takes minutes is drawn
	// at most.
	planWithin = 5 * time.Minute
)

// newPlan arranges the kinds asked for, or draws them when there are none. An error says which kind is impossible.
func newPlan(random *rand.Rand, s cluster.Settings) (plan, error) {
	var p plan
	for _, name := range s.Kinds {
		f, known := faultNamed(name)
		switch {
		case !known:
			return nil, fmt.Errorf("fault %q is unknown", name)
		case f.cannot(s.Members) != "":
			return nil, fmt.Errorf("fault %s %s", name, f.cannot(s.Members))
		case !p.suits(f):
			return nil, fmt.Errorf("fault %s does not go with NATS that is absent", name)
		}
		p.add(f)
	}
	if len(p) > 0 {
		return p, nil
	}
	rounds := min(max(1, int((s.Duration+roundTakes-1)/roundTakes)), maxRounds)
	for len(p) <= rounds { // the last one is cut off: nothing joins it
		f := &faults[random.IntN(len(faults))]
		if f.cannot(s.Members) == "" && p.suits(f) && !(f.long() && p.has((*fault).long)) {
			p.add(f)
		}
	}
	return p[:rounds], nil
}

// add puts the fault beside the last one, where they can be in force at a time.
func (p *plan) add(f *fault) {
	if n := len(*p); n > 0 && len((*p)[n-1]) == 1 && !f.clashes((*p)[n-1][0]) {
		(*p)[n-1] = append((*p)[n-1], f)
		return
	}
	*p = append(*p, []*fault{f})
}

// suits reports whether what the fault needs of the whole history goes with the others.
func (p plan) suits(f *fault) bool {
	all := f.needs | p.needs()
	return all&cluster.NeedAbsent == 0 || all&(cluster.NeedNATS|cluster.NeedTight) == 0
}

// kinds names every fault of the plan once.
func (p plan) kinds() (all []string) {
	for _, round := range p {
		for _, f := range round {
			all = append(all, f.name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// needs is what must hold of a history with the plan.
func (p plan) needs() (all cluster.Need) {
	for _, round := range p {
		for _, f := range round {
			all |= f.needs
		}
	}
	return all
}

// has reports whether any fault of the plan is so.
func (p plan) has(so func(*fault) bool) bool {
	return slices.ContainsFunc(p, func(round []*fault) bool { return slices.ContainsFunc(round, so) })
}

// calm is the time between two rounds.
const calm = time.Second

// disturb goes through a plan, again and again, until every round was and the time is over. Each round waits for traffic to
// flow.
func disturb(ctx context.Context, r *cluster.Cluster, p plan) {
	r.WarmUp(ctx)
	end := time.Now().Add(r.Settings.Duration)
	for i := 0; ctx.Err() == nil && (time.Now().Before(end) || i < len(p) && time.Now().Before(end.Add(planWithin))); i++ {
		makeRound(ctx, r, i+1, p[i%len(p)])
		clock.Sleep(ctx, calm)
		r.WarmUp(ctx)
	}
}

// inVain marks the kind of a fault that did not bite beside another one.
const inVain = ", in vain"

// makeRound makes the disturbances of a round, and returns when all have ended. One that did not bite beside another is made again,
// alone.
func makeRound(ctx context.Context, r *cluster.Cluster, number int, round []*fault) {
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
			clock.Sleep(ctx, after)
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
func claim(r *cluster.Cluster, f *fault) *cluster.Node {
	free := slices.DeleteFunc(slices.Clone(r.Nodes), func(n *cluster.Node) bool { return n.Claimed })
	idle := func(n *cluster.Node) bool { return r.Executions.RunningOn(n.SessionID(), clock.Since(r.Begin)) == 0 }
	if busy := slices.DeleteFunc(slices.Clone(free), idle); f.name == history.KillKind && len(busy) > 0 {
		free = busy
	}
	n := free[r.Random.IntN(len(free))]
	n.Claimed = true
	return n
}

// inflict makes one disturbance. A process that does not serve is damage, any other error a reason to reject.
func inflict(ctx context.Context, r *cluster.Cluster, f *fault, d disturbance) (h history.Fault) {
	h = history.Fault{Kind: f.name, Round: d.round}
	d.begins = func() { h.From, h.InFlight = clock.Since(r.Begin), r.InFlight() }
	d.begins()
	var err error
	h.Target, h.Proof, err = f.inflict(ctx, r, d)
	h.Until = clock.Since(r.Begin)
	if err != nil && !errors.Is(err, cluster.ErrIdle) {
		r.Problem("fault %s of %s: %v", f.name, h.Target, err)
	}
	return h
}
