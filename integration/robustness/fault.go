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
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/namespace"
)

// fault is one kind of disturbance.
type fault struct {
	name  string
	scope scope
	needs need
	// least and most are how long it is in force; what takes its own time ignores them.
	least, most time.Duration
	// inflict disturbs, ends the disturbance, and returns what was disturbed and what shows that it was; no proof means
	// that nothing does. An error means that the run is broken. It must heal when ctx ends, too.
	inflict func(ctx context.Context, r *run, d disturbance) (target, proof string, err error)
}

// disturbance is one case of a fault.
type disturbance struct {
	duration time.Duration
	random   *rand.Rand
	node     *node   // that is claimed for it; nil unless the scope is oneNode
	client   *client // that is claimed for it; nil unless the scope is oneClient
	alone    bool    // no other one is in force
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

// need is what must hold of a whole history for a fault to be possible.
type need int

const (
	needMembers   need = 1 << iota // of etcd: three
	needQuota                      // members with a small quota
	needWrites                     // nodes whose writes can be made to fail
	needTight                      // a NATS that drops slow clients soon
	needAbsent                     // a NATS that never starts
	needNATS                       // one that does
	needProc                       // a /proc that tells the state of processes
	needNamespace                  // nodes in network namespaces of their own
	needLimits                     // nodes that make few attempts of a behavior at once
)

// faults is every kind, in the order in which --all-faults takes them, two at a time.
var faults = []fault{
	{history.KillKind, oneNode, 0, 0, 3 * time.Second, killNode},
	{"compaction", etcd, 0, 2 * time.Second, 4 * time.Second, compact},
	{"node-pause-long", oneNode, needProc, ttl + 1500*time.Millisecond, 2*ttl + time.Second, pauseNode},
	{"nats-restart", nats, needNATS, time.Second, 3 * time.Second, restartNATS},
	{"node-pauses-short", oneNode, needProc, 3 * time.Second, 5 * time.Second, pauseNodeShortly},
	{"etcd-leader-kill", etcd, 0, time.Second, 3 * time.Second, killLeader},
	{"node-starve", oneNode, needProc, 3 * time.Second, 5 * time.Second, starveNode},
	{"writes-lost-and-late", nothing, needWrites, 3 * time.Second, 6 * time.Second, loseWrites},
	{"partition-node-etcd", oneNode, 0, 2 * time.Second, 6 * time.Second, partition(toEtcd, bothWays)},
	{"nats-slow-consumer", nats, needTight, 3 * time.Second, 5 * time.Second, slowConsumer},
	{"partition-node-all", oneNode, 0, 2 * time.Second, 6 * time.Second, partition(toAll, bothWays)},
	{"etcd-member-restart", etcd, 0, time.Second, 2 * time.Second, restartMember},
	{"replies-lost", oneNode, 0, 2 * time.Second, 5 * time.Second, partition(toAll, repliesOnly)},
	{"defragmentation", etcd, 0, 2 * time.Second, 4 * time.Second, defragment},
	{"requests-lost", oneNode, 0, 2 * time.Second, 5 * time.Second, partition(toAll, requestsOnly)},
	{"bus-doubled-and-late", nats, needNATS, 3 * time.Second, 6 * time.Second, disturbBus},
	{stepKind, oneNode, 0, 2 * time.Second, 5 * time.Second, stepClock},
	{"etcd-leader-pause-short", etcd, needProc, 500 * time.Millisecond, 2500 * time.Millisecond, pauseLeader},
	{"partition-node-nats", oneNode, needNATS, 2 * time.Second, 5 * time.Second, partition(toNATS, bothWays)},
	{"etcd-leader-pause-long", etcd, needProc, ttl + time.Second, ttl + 3*time.Second, pauseLeader},
	{"half-open-links", oneNode, 0, 2 * time.Second, 4 * time.Second, loseConnections},
	{"etcd-majority-loss", etcd, 0, 2 * time.Second, 4 * time.Second, loseMajority},
	{"latency", oneNode, 0, 3 * time.Second, 6 * time.Second, delayLinks},
	{"etcd-minority-with-clients", etcd, needMembers, 2 * time.Second, 5 * time.Second, isolateMember},
	{"bus-forged", nats, needNATS, 2 * time.Second, 4 * time.Second, forgeMessages},
	{"etcd-full", etcd, needQuota, time.Second, 3 * time.Second, fillEtcd},
	{"rolling-restart", allNodes, 0, 0, 0, restartNodes},
	{"nats-absent", nats, needAbsent, 4 * time.Second, 6 * time.Second, noNATS},
	{"packets-lost-node-etcd", oneNode, needNamespace, 2 * time.Second, 6 * time.Second, losePackets(toEtcd, bothWays)},
	{"packets-lost-to-servers", oneNode, needNamespace, 2 * time.Second, 5 * time.Second, losePackets(toAll, requestsOnly)},
	{"packets-lost-node-all", oneNode, needNamespace, 2 * time.Second, 6 * time.Second, losePackets(toAll, bothWays)},
	{"packets-lost-node-nats", oneNode, needNamespace | needNATS, 3 * time.Second, 6 * time.Second, losePackets(toNATS, bothWays)},
	{"packets-lost-from-servers", oneNode, needNamespace, 2 * time.Second, 5 * time.Second, losePackets(toAll, repliesOnly)},
	{"client-kill", oneClient, 0, 0, 3 * time.Second, killClient},
	{history.BusAwayKind, nats, needNATS, 65 * time.Second, 80 * time.Second, restartNATS},
	{"pause-and-restart", everything, 0, 0, 0, pauseAndRestart},
	{"limits-and-restart", everything, needLimits, 0, 0, limitsAndRestart},
	{"quarantine-and-restart", everything, 0, time.Second, 2 * time.Second, quarantineAndRestart},
	{unseenKind, everything, 0, 3 * time.Second, 6 * time.Second, jumpUnseen},
	{history.QuietKind, everybody, 0, 2 * time.Minute, 2*time.Minute + 10*time.Second, beQuiet},
	{"servers-elsewhere", nothing, 0, 0, 0, moveServers},
	{"alien-entry", everything, 0, time.Second, 2 * time.Second, alienEntry},
	{"meta-removed", everything, 0, time.Second, 2 * time.Second, removeMeta},
	{"owner-key-damaged", everything, 0, time.Second, 2 * time.Second, damageOwner},
	{"node-key-damaged", everything, 0, time.Second, 2 * time.Second, damageNode},
	{"owner-key-of-no-shard", everything, 0, time.Second, 2 * time.Second, strayOwner},
	{"client-pause", oneClient, needProc, time.Second, ttl + time.Second, pauseClient},
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
	if f.needs&needMembers != 0 && members < 3 {
		return fmt.Sprintf("takes three members of etcd, not %d", members)
	}
	if _, err := os.Stat("/proc/self/stat"); f.needs&needProc != 0 && err != nil {
		return fmt.Sprintf("takes the state of processes: %v", err)
	}
	if err := namespace.Cannot(); f.needs&needNamespace != 0 && err != nil {
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
func newPlan(random *rand.Rand, s settings) (plan, error) {
	var p plan
	for _, name := range s.kinds {
		f, known := faultNamed(name)
		switch {
		case !known:
			return nil, fmt.Errorf("fault %q is unknown", name)
		case f.cannot(s.members) != "":
			return nil, fmt.Errorf("fault %s %s", name, f.cannot(s.members))
		case !p.suits(f):
			return nil, fmt.Errorf("fault %s does not go with NATS that is absent", name)
		}
		p.add(f)
	}
	if len(p) > 0 {
		return p, nil
	}
	rounds := min(max(1, int((s.duration+roundTakes-1)/roundTakes)), maxRounds)
	for len(p) <= rounds { // the last one is cut off: nothing joins it
		f := &faults[random.IntN(len(faults))]
		if f.cannot(s.members) == "" && p.suits(f) && !(f.long() && p.has((*fault).long)) {
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
	all := f.needs
	for _, round := range p {
		for _, other := range round {
			all |= other.needs
		}
	}
	return all&needAbsent == 0 || all&(needNATS|needTight) == 0
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

func (p plan) needs(n need) bool { return p.has(func(f *fault) bool { return f.needs&n != 0 }) }

// has reports whether any fault of the plan is so.
func (p plan) has(so func(*fault) bool) bool {
	return slices.ContainsFunc(p, func(round []*fault) bool { return slices.ContainsFunc(round, so) })
}

func (p plan) nats() natsMode {
	switch {
	case p.needs(needAbsent):
		return natsAbsent
	case p.needs(needTight):
		return natsTight
	}
	return natsOn
}

// calm is the time between two rounds.
const calm = time.Second

// disturb goes through the plan, again and again, until every round was and the time is over. Each round waits for traffic to
// flow.
func (r *run) disturb(ctx context.Context) {
	r.warmUp(ctx)
	end := time.Now().Add(r.settings.duration)
	for i := 0; ctx.Err() == nil && (time.Now().Before(end) || i < len(r.plan) && time.Now().Before(end.Add(planWithin))); i++ {
		r.round(ctx, i+1, r.plan[i%len(r.plan)])
		clock.Sleep(ctx, calm)
		r.warmUp(ctx)
	}
}

// inVain marks the kind of a fault that did not bite beside another one.
const inVain = ", in vain"

// round makes the disturbances of a round, and returns when all have ended. One that did not bite beside another is made again,
// alone.
func (r *run) round(ctx context.Context, number int, round []*fault) {
	disturbances, again, made := make([]func(), len(round)), make([]func(), len(round)), make([]history.Fault, len(round))
	for i, f := range round {
		d := disturbance{random: rand.New(rand.NewPCG(r.random.Uint64(), 0)), duration: f.least, alone: len(round) == 1, round: number}
		if f.most > f.least {
			d.duration += time.Duration(r.random.Int64N(int64(f.most - f.least)))
		}
		switch f.scope {
		case oneNode:
			d.node = r.claim(f)
		case oneClient:
			d.client = r.freeClient(r.random)
			d.client.claimed = true
		}
		after := time.Duration(i) * time.Duration(r.random.Int64N(int64(calm)))
		disturbances[i] = func() {
			clock.Sleep(ctx, after)
			made[i] = r.inflict(ctx, f, d)
		}
		again[i] = func() {
			vain := made[i]
			vain.Kind, vain.Proof = vain.Kind+inVain, "it was made again, alone"
			r.noteFault(vain)
			d.alone = true
			r.warmUp(ctx)
			made[i] = r.inflict(ctx, f, d)
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
		r.noteFault(made[i])
	}
	for _, n := range r.nodes {
		n.claimed = false
	}
	for _, c := range r.clients {
		c.claimed = false
	}
}

// freeClient draws a client that no fault of the round has claimed.
func (r *run) freeClient(random *rand.Rand) *client {
	free := slices.DeleteFunc(slices.Clone(r.clients), func(c *client) bool { return c.claimed })
	return free[random.IntN(len(free))]
}

// claim draws a node that no other fault of the round has: to be killed, one with work, if any has.
func (r *run) claim(f *fault) *node {
	free := slices.DeleteFunc(slices.Clone(r.nodes), func(n *node) bool { return n.claimed })
	idle := func(n *node) bool { return r.oracle.RunningOn(n.sessionID(), clock.Since(r.begin)) == 0 }
	if busy := slices.DeleteFunc(slices.Clone(free), idle); f.name == history.KillKind && len(busy) > 0 {
		free = busy
	}
	n := free[r.random.IntN(len(free))]
	n.claimed = true
	return n
}

// inflict makes one disturbance. A process that does not serve is damage, any other error a reason to reject.
func (r *run) inflict(ctx context.Context, f *fault, d disturbance) (h history.Fault) {
	h = history.Fault{Kind: f.name, Round: d.round}
	d.begins = func() { h.From, h.InFlight = clock.Since(r.begin), r.inFlight() }
	d.begins()
	var err error
	h.Target, h.Proof, err = f.inflict(ctx, r, d)
	h.Until = clock.Since(r.begin)
	if err != nil && !errors.Is(err, errIdle) {
		r.problem("fault %s of %s: %v", f.name, h.Target, err)
	}
	return h
}

func (r *run) noteFault(h history.Fault) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.faults = append(r.faults, h)
}

// restart starts the process of a node again and waits until it serves.
func (r *run) restart(ctx context.Context, n *node) error {
	return errors.Join(r.startNode(n), r.awaitNode(ctx, n))
}
