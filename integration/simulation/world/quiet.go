package world

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/internal/modeletcd"
)

// healWithin bounds the time after its repair for which a damaged shard may count as damaged.
const healWithin = 6 * time.Second

// scenes lists the scenes of a quiet time, each as often as it is likely.
var scenes = []func(*world){
	(*world).still, (*world).departure, (*world).departure, (*world).minutesWithoutBus, (*world).unseenStep, (*world).pauseAndRestart,
	(*world).pauseAndRestart, (*world).tamper, (*world).alien, (*world).almostFull, (*world).minutesAloneWithoutBus, (*world).minutesAloneWithoutBus,
}

// The kinds of faults that only scenes have.
const (
	leaveKind  = "leave"
	dieKind    = "die"
	vanishKind = "vanish"
	comeKind   = "come"
	jumpKind   = "clock jump"
	allKind    = "all restart"
	leasesKind = "all leases revoked"
	ownerKind  = "owner key damaged"
	strayKind  = "owner key of no shard"
	alienKind  = "alien entry"
)

// quietKinds are these, and that of the bus.
var quietKinds = []string{leaveKind, dieKind, vanishKind, comeKind, jumpKind, allKind, leasesKind, ownerKind, strayKind, alienKind,
	history.AlmostFullKind, history.BusAwayKind, history.BusAwayFromOneKind}

// Kinds returns the names of all kinds of faults, sorted.
func Kinds() (all []string) {
	for _, f := range append(kinds, aloneKind) {
		all = append(all, f.kind)
	}
	if quietShare > 0 {
		all = append(all, quietKinds...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// quiet goes through some scenes, one after another.
func (w *world) quiet() {
	w.trickle(calm)
	for range 1 + w.dice.n(2) {
		pick(w.dice, scenes...)(w)
		w.trickle(calm)
	}
}

// still is two minutes in which almost nothing happens.
func (w *world) still() { w.trickle(w.dice.between(time.Minute, 2*time.Minute)) }

// departure takes a node away for long, in one of the ways to go; the others have all that is to do.
func (w *world) departure() {
	name := someNode(w)
	p := w.process(name)
	if p == nil {
		return
	}
	away := w.dice.between(20*time.Second, time.Minute)
	target := name + " " + p.node.SessionID()
	switch w.dice.n(3) {
	case 0:
		w.happens(leaveKind, target, func() (proof string) {
			w.takeDown(name)
			proof = w.workOf(p)
			p.leave()
			w.abandon(p)
			return proof
		})
	case 1:
		w.happens(dieKind, target, func() (proof string) {
			w.takeDown(name)
			proof = w.workOf(p)
			p.die()
			w.abandon(p)
			return proof
		})
	default:
		hits := since(held, p.conn.hits)
		w.happens(vanishKind, target, func() string {
			p.port.hush(true)
			p.conn.change(func(f *faultSettings) { f.held++ })
			time.Sleep(ttl)
			return hits()
		})
		w.trickle(away)
		w.happens(comeKind, target, func() string {
			p.conn.change(func(f *faultSettings) { f.held-- })
			p.port.hush(false)
			return hits()
		})
		return
	}
	w.trickle(away)
	w.happens(comeKind, name, func() string {
		w.bringUp(name)
		return w.awaitReady(name)
	})
}

// minutesWithoutBus has a backlog while there is no bus, then nothing for long, a kill, and later the bus again.
func (w *world) minutesWithoutBus() {
	all := w.everybody()
	var tallies []*tally
	for _, p := range all {
		tallies = append(tallies, p.port.hits)
		p.port.disconnect(true)
	}
	w.beBusless(wholeCluster)
	hits := since(muffled, tallies...)
	from := w.record.Now()
	time.Sleep(calm)
	w.burst(20, 300)
	w.trickle(w.dice.between(65*time.Second, 100*time.Second))
	name := someNode(w)
	if w.roomy && w.process(name) != nil {
		w.burst(6, 3000)
		w.suffer(aloneKind)
	}
	w.trickle(calm)
	w.beBusless("")
	for _, p := range w.everybody() {
		p.port.disconnect(false)
	}
	w.record.Fault(history.Fault{Kind: history.BusAwayKind, Target: wholeCluster, From: from, Until: w.record.Now(), Proof: hits()})
	if w.dice.chance(0.5) {
		w.trickle(65 * time.Second)
	}
}

// unseenStep lets the clock of a node jump while next to nothing happens, and back.
func (w *world) unseenStep() {
	name := someNode(w)
	p := w.process(name)
	if p == nil {
		return
	}
	step := pick(w.dice, -90*time.Second, -8*time.Second, 8*time.Second, 50*time.Second, 20*time.Minute)
	hits := since(misread, p.hits)
	w.happens(jumpKind, name, func() string {
		w.misset(p, step)
		w.trickle(w.dice.between(time.Second, 40*time.Second))
		w.misset(p, 0)
		if proof := hits(); proof != "" {
			return fmt.Sprintf("%s, %s off", proof, step)
		}
		return ""
	})
	for range 5 { // these are tried again soon, whatever time the shard had reached
		w.caller().submit(w.clients[0], order{behavior: again, job: job{Work: 10, Fails: 2}})
	}
}

// pauseAndRestart pauses a behavior and then gives every node a reason to begin anew. What is paused must not start.
func (w *world) pauseAndRestart() {
	behavior := pick(w.dice, once, again)
	if !w.setPaused(true, behavior) {
		return
	}
	w.trickle(calm)
	switch w.dice.n(4) {
	case 0:
		w.happens(allKind, wholeCluster, func() string { return w.restartAll(func(p *process) { p.leave() }) })
	case 1:
		w.happens(allKind, wholeCluster, func() string { return w.restartAll((*process).die) })
	case 2:
		w.happens(leasesKind, wholeCluster, w.expireAll)
	default:
		w.suffer(fault{"kill", someNode, (*world).killNode})
	}
	w.trickle(w.dice.between(time.Second, 10*time.Second))
	if !w.setPaused(false, behavior) {
		w.record.Damage(served, "%s cannot be unpaused", behavior)
	}
}

// setPaused pauses a behavior, or ends that, again until it is answered, and reports whether it was.
func (w *world) setPaused(on bool, behavior string) bool {
	for range 10 {
		if op := w.caller().pause(w.clients[0], on, behavior, "the nodes begin anew"); op.Answer == history.OK {
			return true
		}
		time.Sleep(time.Second)
	}
	return false
}

// restartAll ends every node at once and begins them again.
func (w *world) restartAll(end func(*process)) (proof string) {
	var all sync.WaitGroup
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		p := w.takeDown(name)
		if p == nil {
			continue
		}
		proof += w.workOf(p)
		all.Go(func() {
			end(p)
			w.abandon(p)
			w.last(0, time.Second)
			w.bringUp(name)
			w.awaitReady(name)
		})
	}
	all.Wait()
	return proof
}

// tamper writes what no node has written where owners are named: a shard is taken from whoever had it, or there is none
// of that number.
func (w *world) tamper() {
	if shard := w.dice.n(w.shards); w.dice.chance(0.7) {
		w.happens(ownerKind, fmt.Sprintf("shard %d", shard), func() string { return w.write(fmt.Sprintf("owner/%d", shard), "junk") })
		return
	}
	w.happens(strayKind, "no shard", func() string { return w.write("owner/99", "junk") })
}

// alien writes something where the next entry of a shard belongs, and removes it after a while.
func (w *world) alien() {
	shard := w.dice.n(w.shards)
	w.happens(alienKind, fmt.Sprintf("shard %d", shard), func() (proof string) {
		operator := w.etcd.Connect(modeletcd.Direct{})
		defer operator.Close() // tells that its context ended
		ctx := context.Background()
		key := fmt.Sprintf("%s/journal/%d/%016x", cluster, shard, w.head(shard)+1)
		w.damaged.Store(true)
		put, err := operator.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, "junk")).Commit()
		if err != nil || !put.Succeeded { // an entry was there first
			return ""
		}
		w.stranger(put.Header.Revision)
		w.burst(8, 50)
		w.trickle(w.dice.between(time.Second, 20*time.Second))
		gone, err := operator.Delete(ctx, key)
		if err != nil || gone.Deleted == 0 {
			return ""
		}
		w.stranger(gone.Header.Revision)
		return fmt.Sprintf("%s written at revision %d", key, put.Header.Revision)
	})
	w.trickle(healWithin)
	w.damaged.Store(false)
}

// head is the number of the last entry of a shard, 0 without one.
func (w *world) head(shard int) (number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.etcd.History(1) {
		if key, err := history.KeyOf(path(&c)); err == nil && key.Kind == "journal" && key.Shard == shard && !w.strange[c.ModRevision] {
			number = max(number, key.Number)
		}
	}
	return number
}

// almostFull lets the store look almost full for a while, in which there are submits of all kinds that would add to it.
func (w *world) almostFull() {
	const lasts = 12 * time.Second
	name := func(kind string) events.TaskID { return events.TaskID(fmt.Sprintf("%s-%d", kind, w.record.Now())) }
	waits := order{id: name("waits"), behavior: merge, job: job{Work: 10}, delay: lasts + calm}
	ended := order{id: name("ended"), behavior: again, job: job{Work: 10}}
	for _, o := range []order{waits, ended} {
		w.caller().submit(w.clients[0], o)
	}
	w.trickle(calm)
	w.happens(history.AlmostFullKind, wholeCluster, func() string {
		w.almost.Store(true)
		refused := 0
		for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
			waits.job.Work++
			for _, o := range []order{waits, ended, {behavior: once, job: job{Work: 10}}} {
				if _, op := w.caller().submit(w.clients[0], o); op.Answer == history.Refused {
					refused++
				}
			}
		}
		w.almost.Store(false)
		if refused == 0 {
			return ""
		}
		return fmt.Sprintf("%d submits refused", refused)
	})
}

// write puts a key of the cluster, and remembers that no process of it did.
func (w *world) write(key, value string) (proof string) {
	operator := w.etcd.Connect(modeletcd.Direct{})
	resp, err := operator.Put(context.Background(), cluster+"/"+key, value)
	_ = operator.Close() // tells that its context ended
	if err != nil {
		return ""
	}
	w.stranger(resp.Header.Revision)
	return fmt.Sprintf("written at revision %d", resp.Header.Revision)
}

// stranger remembers that nobody of the cluster wrote at a revision.
func (w *world) stranger(revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strange[revision] = true
}

// expireAll ends all leases, as an etcd leader does that was paused for longer than they live.
func (w *world) expireAll() string {
	n := 0
	for _, lease := range w.etcd.Leases() {
		if w.etcd.Expire(lease) {
			n++
		}
	}
	time.Sleep(time.Second)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d leases ended", n)
}
