package world

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"taskledger/integration/robustness/history"
	"taskledger/internal/modeletcd"
)

const (
	// faultsFrom and faultsUntil are when faults begin; a pair begins together.
	faultsFrom  = 300 * time.Millisecond
	faultsUntil = 9 * time.Second
	drawnLeast  = 11
	drawnMost   = 15
)

// fault is a kind of disturbance. inject makes it, waits, ends it, and says what shows that it bit.
type fault struct {
	kind   string
	target func(*world) string // who may suffer only one of this kind at a time
	inject func(w *world, target string) (proof string)
}

var kinds = []fault{
	{"kill", someNode, (*world).killNode},
	{"kill", someNode, (*world).killNode},
	{"restart", someNode, (*world).restartNode},
	{"freeze", someNode, (*world).freeze},
	{"cut off from etcd", someone, (*world).cutFromEtcd},
	{"one-way to etcd", someone, (*world).oneWay},
	{"lease revoked early", someNode, (*world).expire},
	{"leader change", everyone, (*world).changeLeader},
	{"compacted under watchers", everyone, (*world).compact},
	{"watch held", someone, (*world).holdWatch},
	{"bus away", everyone, (*world).busAway},
	{"cut off from the bus", someone, (*world).cutFromBus},
	{"unruly bus", everyone, (*world).unrulyBus},
	{"replies lost", someone, (*world).loseReplies},
	{"requests lost", someone, (*world).loseRequests},
	{"late copies", someone, (*world).copyLate},
	{"slow etcd", someone, (*world).slowEtcd},
	{"no space", everyone, (*world).noSpace},
	{"clock step", someNode, (*world).stepClock},
}

func someNode(w *world) string { return fmt.Sprintf("node-%d", w.dice.n(nodes)) }

func someone(w *world) string {
	if w.dice.chance(0.25) {
		return fmt.Sprintf("client-%d", w.dice.n(clients))
	}
	return someNode(w)
}

func everyone(*world) string { return wholeCluster }

// faults injects faults at drawn times, often in pairs, and returns when all have ended.
func (w *world) faults() {
	var all sync.WaitGroup
	for n := drawnLeast + w.dice.n(drawnMost-drawnLeast+1); n > 0; {
		at := w.dice.between(faultsFrom, faultsUntil)
		together := min(n, 1+w.dice.n(2))
		n -= together
		for range together {
			f := pick(w.dice, kinds...)
			all.Go(func() {
				time.Sleep(at)
				w.suffer(f)
			})
		}
	}
	all.Wait()
	if w.roomy {
		w.killAlone()
	}
}

// aloneKind is the kill of a node that has work, while everything else is well and slots are free: that its work is
// done again in time is promised.
var aloneKind = fault{history.KillKind, someNode, (*world).killNode}

// killAlone makes sure that a node has work, and kills it.
func (w *world) killAlone() {
	time.Sleep(ttl) // what the faults have left behind is over
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() { w.caller().submit(w.clients[0], order{behavior: once, job: job{Work: 3000}}) })
	}
	all.Wait()
	w.last(100*time.Millisecond, time.Second)
	w.suffer(aloneKind)
}

// suffer injects a fault and records it, unless its like is in force.
func (w *world) suffer(f fault) {
	target := f.target(w)
	release, ok := w.reserve(f.kind, target)
	if !ok {
		return
	}
	defer release()
	from, suffers := w.record.Now(), target
	if p := w.process(target); p != nil && p.node != nil {
		suffers += " " + p.node.SessionID()
	}
	proof := f.inject(w, target)
	w.record.Fault(history.Fault{Kind: f.kind, Target: suffers, From: from, Until: w.record.Now(), Proof: proof})
}

// happens records something that disturbs as a fault.
func (w *world) happens(kind, target string, inject func() (proof string)) {
	from := w.record.Now()
	proof := inject()
	w.record.Fault(history.Fault{Kind: kind, Target: target, From: from, Until: w.record.Now(), Proof: proof})
}

// reserve marks what a fault changes. A node that is down suffers nothing else.
func (w *world) reserve(kind, target string) (release func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := kind + " " + target
	if strings.HasPrefix(target, "node-") && w.node(target) == nil || w.busy[key] {
		return nil, false
	}
	w.busy[key] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.busy, key)
	}, true
}

// last lets a fault last.
func (w *world) last(least, most time.Duration) { time.Sleep(w.dice.between(least, most)) }

// takeDown takes a node out of the world; nil when it is out already.
func (w *world) takeDown(name string) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.node(name)
	w.nodes[name[len(name)-1]-'0'] = nil
	return p
}

// bringUp begins a node again.
func (w *world) bringUp(name string) {
	p, err := w.begin(name, true)
	if err != nil {
		w.record.Damage(ended, "%v", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[name[len(name)-1]-'0'] = p
}

// abandon allows that mail of a process stays: it could not remove it, or not for the faults. A sweep does, an hour
// later.
func (w *world) abandon(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swept[p.port.mail()] = 0
}

// awaitReady waits until a node that has begun serves.
func (w *world) awaitReady(name string) (proof string) {
	p := w.process(name)
	if p == nil {
		return ""
	}
	select {
	case <-p.node.Ready():
		return "it serves"
	case <-time.After(beginWithin):
		w.record.Damage(ended, "%s is not ready %s after it came", name, beginWithin)
		return ""
	}
}

func (w *world) killNode(target string) (proof string) {
	p := w.takeDown(target)
	if p == nil {
		return ""
	}
	had := w.workOf(p)
	p.die()
	w.abandon(p)
	w.last(50*time.Millisecond, 4*time.Second)
	w.bringUp(target)
	return had
}

// workOf says what a node has to lose: the attempts that run on it, the shards that it owns; "" = neither.
func (w *world) workOf(p *process) string {
	session := p.node.SessionID()
	owned := w.shardsOf(session)
	attempts := w.record.Running(session)
	if session == "" || attempts+len(owned) == 0 {
		return ""
	}
	return fmt.Sprintf("%d attempts and %d shards of session %s", attempts, len(owned), session)
}

// shardsOf returns the shards that a session owns.
func (w *world) shardsOf(session string) map[int]bool {
	owned := map[int]bool{}
	for _, c := range w.etcd.History(1) {
		key, err := history.KeyOf(path(&c))
		if change, of, badly := key.Change(c.Value, c.ModRevision, c.Deleted); err == nil && of && badly == nil && key.Kind == "owner" {
			owned[key.Shard] = change.Owner == session
		}
	}
	maps.DeleteFunc(owned, func(_ int, own bool) bool { return !own })
	return owned
}

func (w *world) restartNode(target string) (proof string) {
	p := w.takeDown(target)
	if p == nil {
		return ""
	}
	had := w.workOf(p)
	p.leave()
	w.abandon(p)
	w.last(10*time.Millisecond, time.Second)
	w.bringUp(target)
	return had
}

// disturb changes the connections of the targets to etcd for a while.
func (w *world) disturb(
	target string, h hit, least, most time.Duration, begin, end func(*faultSettings),
) (proof string) {
	all := w.targets(target)
	hits := since(h, tallies(all)...)
	change(all, begin)
	w.last(least, most)
	change(all, end)
	return hits()
}

func change(all []*process, how func(*faultSettings)) {
	for _, p := range all {
		p.conn.change(how)
	}
}

func tallies(all []*process) (those []*tally) {
	for _, p := range all {
		those = append(those, p.conn.hits)
	}
	return those
}

// freeze keeps a node from everybody for longer than its session lives; then what it had sent arrives.
func (w *world) freeze(target string) (proof string) {
	p := w.process(target)
	if p == nil {
		return ""
	}
	p.port.hush(true)
	defer p.port.hush(false)
	return w.disturb(target, held, ttl, ttl+2*time.Second,
		func(f *faultSettings) { f.held++ }, func(f *faultSettings) { f.held-- })
}

func (w *world) cutFromEtcd(target string) (proof string) {
	return w.disturb(target, refused, 100*time.Millisecond, 4*time.Second,
		func(f *faultSettings) { f.away++ }, func(f *faultSettings) { f.away-- })
}

func (w *world) oneWay(target string) (proof string) {
	return w.disturb(target, replyLost, 100*time.Millisecond, 4*time.Second,
		func(f *faultSettings) { f.oneWay++ }, func(f *faultSettings) { f.oneWay-- })
}

func (w *world) holdWatch(target string) (proof string) {
	return w.disturb(target, watchHeld, 500*time.Millisecond, 5*time.Second,
		func(f *faultSettings) { f.watchHeld++ }, func(f *faultSettings) { f.watchHeld-- })
}

func (w *world) loseReplies(target string) (proof string) {
	return w.disturb(target, replyLost, 500*time.Millisecond, 4*time.Second,
		func(f *faultSettings) { f.loseReply = 0.3 }, func(f *faultSettings) { f.loseReply = 0 })
}

func (w *world) loseRequests(target string) (proof string) {
	return w.disturb(target, requestLost, 500*time.Millisecond, 4*time.Second,
		func(f *faultSettings) { f.loseRequest = 0.3 }, func(f *faultSettings) { f.loseRequest = 0 })
}

func (w *world) copyLate(target string) (proof string) {
	return w.disturb(target, copied, time.Second, 4*time.Second,
		func(f *faultSettings) { f.copies = 0.4 }, func(f *faultSettings) { f.copies = 0 })
}

func (w *world) slowEtcd(target string) (proof string) {
	slow := w.dice.between(20*time.Millisecond, 700*time.Millisecond)
	return w.disturb(target, slowed, 500*time.Millisecond, 4*time.Second,
		func(f *faultSettings) { f.slow = slow }, func(f *faultSettings) { f.slow = 0 })
}

// expire ends the lease of a node that goes on for a while.
func (w *world) expire(target string) (proof string) {
	p := w.process(target)
	if p == nil {
		return ""
	}
	session := p.node.SessionID()
	for _, c := range w.etcd.History(1) {
		if session != "" && c.Key == cluster+"/node/"+session && !c.Deleted {
			p.conn.change(func(f *faultSettings) { f.watchHeld++ })
			lost := w.etcd.Expire(c.Lease)
			w.last(10*time.Millisecond, time.Second)
			p.conn.change(func(f *faultSettings) { f.watchHeld-- })
			if lost {
				return "session " + session + " lost its lease"
			}
			return "" // it had lost it already
		}
	}
	return ""
}

// changeLeader leaves the cluster without a leader for a moment.
func (w *world) changeLeader(target string) (proof string) {
	w.etcd.BreakWatches(nil)
	proof = w.disturb(target, refused, 50*time.Millisecond, 1500*time.Millisecond,
		func(f *faultSettings) { f.away++ }, func(f *faultSettings) { f.away-- })
	leases := len(w.etcd.Leases())
	w.etcd.ElectLeader()
	if proof == "" || leases == 0 {
		return ""
	}
	return fmt.Sprintf("%s, %d leases renewed", proof, leases)
}

// compact forgets what watchers that were cut off have not seen yet.
func (w *world) compact(target string) (proof string) {
	before, all := w.etcd.Revision(), w.targets(target)
	hits := since(watchHeld, tallies(all)...)
	change(all, func(f *faultSettings) { f.watchHeld++ })
	defer change(all, func(f *faultSettings) { f.watchHeld-- })
	w.last(300*time.Millisecond, time.Second)
	w.etcd.BreakWatches(errAway)
	revision := w.etcd.Revision()
	operator := w.etcd.Connect(modeletcd.Direct{})
	_, err := operator.Compact(context.Background(), revision)
	_ = operator.Close() // tells that its context ended
	held := hits()
	if err != nil || revision == before || held == "" {
		return ""
	}
	return fmt.Sprintf("compacted %d revisions, %s", revision-before, held)
}

// noSpace fills the store: an operator raises the alarm, or a request does by which it grows too large.
func (w *world) noSpace(target string) (proof string) {
	hits := since(noSpace, tallies(w.targets(target))...)
	if w.dice.chance(0.5) {
		w.etcd.Fill()
	} else {
		w.etcd.SetFull(true)
	}
	w.last(100*time.Millisecond, 2500*time.Millisecond)
	w.etcd.SetFull(false)
	return hits()
}

// ports changes the connections of the targets to the bus for a while.
func (w *world) ports(target string, h hit, least, most time.Duration, begin, end func(*port)) (proof string) {
	all := w.targets(target)
	var tallies []*tally
	for _, p := range all {
		tallies = append(tallies, p.port.hits)
	}
	hits := since(h, tallies...)
	for _, p := range all {
		begin(p.port)
	}
	w.last(least, most)
	for _, p := range all {
		end(p.port)
	}
	return hits()
}

func (w *world) busAway(target string) (proof string) {
	return w.ports(target, muffled, 200*time.Millisecond, 4*time.Second,
		func(p *port) { p.disconnect(true) }, func(p *port) { p.disconnect(false) })
}

func (w *world) cutFromBus(target string) (proof string) {
	return w.ports(target, muffled, 200*time.Millisecond, 4*time.Second,
		func(p *port) { p.hush(true) }, func(p *port) { p.hush(false) })
}

func (w *world) unrulyBus(target string) (proof string) {
	u := unruly{lose: pick(w.dice, 0, 0.1, 0.4), double: pick(w.dice, 0, 0.3), late: 0.2}
	return w.ports(target, delayed, 500*time.Millisecond, 4*time.Second,
		func(p *port) { p.bus.misbehave(u) }, func(p *port) { p.bus.misbehave(unruly{}) })
}

// stepClock lets a node's wall clock jump, and jump back.
func (w *world) stepClock(target string) (proof string) {
	p := w.process(target)
	if p == nil {
		return ""
	}
	hits := since(misread, p.hits)
	step := pick(w.dice, -90*time.Second, -10*time.Second, -time.Second, time.Second, 8*time.Second, 15*time.Second)
	w.misset(p, step)
	w.last(500*time.Millisecond, 5*time.Second)
	w.misset(p, 0)
	if proof = hits(); proof != "" {
		proof += fmt.Sprintf(", %s off", step)
	}
	return proof
}
