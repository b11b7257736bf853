package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/signal"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/store"
)

const (
	loadSubject = "load"
	// loadEvery is the shortest time between two load messages. The first change is sent at once.
	loadEvery = 20 * time.Millisecond
	// loadKeyEvery is the shortest time between two updates of the node key, which carries the load while there is
	// no bus. A new session gets one at once.
	loadKeyEvery = 200 * time.Millisecond
	// sendEvery is the time between two messages while nothing changes.
	sendEvery = loadAge / 4
	// loadAge is the time for which the backlog of a load message counts, and after which a present node that is
	// silent on the bus counts as cut off from it.
	loadAge = 10 * time.Second
)

// load sends to the other nodes which ready tasks wait in the shards served here, and the time of the clock here,
// and holds what they send. It sends over the bus, and by the node key if the bus does not reach every node.
type load struct {
	m              *member
	overBus, byKey *way
	cut            atomic.Bool // a backlog had to be left out

	mu    sync.Mutex
	peers map[string]*peer // by session id
	count uint64           // of the last message
	up    time.Time        // when the bus was last connected
	keyed time.Time        // when the node key was last updated with a message
	ahead time.Duration    // of the clock here against the others', as reported
}

// way is a channel on which loads are sent: the bus, or the node key.
type way struct {
	// send sends a message, unless nobody needs it, and returns the pause after it. Without a change a few seconds
	// have passed.
	send         func(ctx context.Context, changed bool) (pause time.Duration)
	wake, greets signal.Signal
}

// peer is another session, as far as known.
type peer struct {
	present bool      // the membership has shown it
	since   time.Time // when it did first
	count   uint64    // of the last message
	at      time.Time
	onBus   time.Time              // when it was last heard over the bus; zero: never
	clock   events.Millis          // its clock at that time, when the message was first heard; 0 = not known
	backlog map[int]map[string]int // ready tasks by shard and behavior
}

func newLoad(m *member) *load {
	l := &load{m: m, peers: map[string]*peer{}}
	l.overBus = &way{l.sendOverBus, signal.New(), signal.New()}
	l.byKey = &way{l.sendByKey, signal.New(), signal.New()}
	return l
}

// changed makes both channels send a change.
func (l *load) changed() {
	l.overBus.wake.Notify()
	l.byKey.wake.Notify()
}

// greet makes both channels send the load at once, whether it has changed or not: a present node has not heard it.
func (l *load) greet() {
	l.overBus.greets.Notify()
	l.byKey.greets.Notify()
}

// busConnected greets the nodes that have not heard this one while it had no bus.
func (l *load) busConnected() {
	l.mu.Lock()
	l.up = time.Now()
	l.mu.Unlock()
	l.greet()
}

// run sends every change, the first at once, and the load every few seconds in any case.
func (l *load) run(ctx context.Context) error {
	if bus := l.m.bus; bus != nil {
		err := bus.Subscribe(ctx, loadSubject, "", func(msg store.Message) { l.hear(msg.Data) })
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("subscribe to loads: %w", err)
		}
	}
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() { l.sendLoop(ctx, l.overBus) })
	sending.Go(func() { l.sendLoop(ctx, l.byKey) })
	regular := time.NewTicker(sendEvery)
	defer regular.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-regular.C:
			l.checkClock(ctx)
			if n := l.m.node; n.relimited.Swap(false) && l.m.updateKey(ctx) != nil {
				n.relimited.Store(true)
			}
		}
	}
}

func (l *load) sendLoop(ctx context.Context, w *way) {
	regular := time.NewTicker(sendEvery)
	defer regular.Stop()
	for wasBusy := false; ; {
		force, greet := false, false
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-w.greets: // the greeted node hears it: it had subscribed before, or greets again
			greet = true
		case <-regular.C:
			force = true
		}
		busy := l.m.place.backlogged()
		changed := busy || wasBusy || greet
		wasBusy = busy
		if changed || force {
			w.rest(ctx, w.send(ctx, changed))
		}
	}
}

// rest waits for a pause, which a greeting cuts short.
func (w *way) rest(ctx context.Context, pause time.Duration) {
	least := min(pause, loadEvery)
	select {
	case <-ctx.Done():
	case <-time.After(least):
	}
	if pause <= least {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause - least):
	case <-w.greets:
		w.greets.Notify()
	}
}

func (l *load) sendOverBus(context.Context, bool) (pause time.Duration) {
	if l.m.bus == nil || !l.m.sender.Connected() {
		return 0
	}
	l.m.sender.Hint(loadSubject, "", l.message())
	return loadEvery
}

// sendByKey updates the node key, less often than messages are sent over the bus, and while nothing changes only
// for the clock.
func (l *load) sendByKey(ctx context.Context, changed bool) (pause time.Duration) {
	l.mu.Lock()
	due := changed || time.Since(l.keyed) >= clockEvery
	l.mu.Unlock()
	if !due || l.busReachesAll() {
		return 0
	}
	if err := l.m.updateKey(ctx); err != nil && ctx.Err() == nil {
		l.m.log.WarnContext(ctx, "load is not told", "err", err)
	}
	return loadKeyEvery
}

// busReachesAll reports whether messages on the bus reach every node, as far as is known here: a node that is not
// heard there does not hear them either.
func (l *load) busReachesAll() bool {
	if l.m.bus == nil || !l.m.sender.Connected() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.peers {
		byKeyOnly := p.onBus.IsZero() && p.clock != 0
		silent := time.Since(p.onBus) > loadAge && time.Since(p.since) > loadAge && time.Since(l.up) > loadAge
		if p.present && (byKeyOnly || silent) {
			return false
		}
	}
	return true
}

// forKey returns the message for the node key. It is nil if the bus reaches every node and the clock here agrees
// with the others': readers of the keys see a difference.
func (l *load) forKey() []byte {
	l.mu.Lock()
	off := l.ahead != 0
	l.mu.Unlock()
	if !off && l.busReachesAll() {
		return nil
	}
	data := l.message()
	l.mu.Lock()
	l.keyed = time.Now()
	l.mu.Unlock()
	return data
}

// backlogged reports that something waits in the shards served here.
func (p *placement) backlogged() bool {
	return slices.ContainsFunc(p.served(), func(o *shard.Owner) bool { return len(o.Backlog()) > 0 })
}

// message makes a message of the present load. Each has a greater number than those before it.
func (l *load) message() []byte {
	var rows []backlogRow
	for _, o := range l.m.place.served() {
		for behavior, ready := range o.Backlog() {
			rows = append(rows, backlogRow{int64(o.Ownership().Shard), behavior, int64(ready)})
		}
	}
	slices.SortFunc(rows, func(a, b backlogRow) int {
		return cmp.Or(cmp.Compare(b.Ready, a.Ready), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Behavior, b.Behavior))
	})
	n := 0
	for size := 0; n < len(rows); n++ {
		if size += backlogRowBytes + len(rows[n].Behavior); size > maxLoadBytes {
			break
		}
	}
	if n < len(rows) && !l.cut.Swap(true) {
		l.m.log.Warn("of the backlogs here only the longest are told", "told", n, "all", len(rows))
	}
	now := int64(l.m.now())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	return message.Encode(loadMessage{
		Node:    l.m.session.ID,
		Count:   l.count,
		Clock:   now,
		Ahead:   l.ahead.Milliseconds(),
		Backlog: rows[:n],
	})
}

// hear takes a load message from the bus. A node that is heard for the first time may not have heard this one: it
// was not yet subscribed when others saw its session.
func (l *load) hear(data []byte) {
	m, err := command.ReadLenient[loadMessage](data)
	if err == nil && m.Node != l.m.session.ID && l.take(m, true, true) {
		l.greet()
	}
}

// take stores the content of a message, once: a message that is heard again, or late, changes nothing. The content
// of a node key from before this session is of unknown age, so that only its number counts. It reports whether the
// clock of that node was not known.
func (l *load) take(m loadMessage, fresh, onBus bool) (first bool) {
	l.mu.Lock()
	p := l.peers[m.Node]
	if p == nil {
		p = &peer{at: time.Now()}
		l.peers[m.Node] = p
	}
	if m.Count <= p.count {
		l.mu.Unlock()
		return false
	}
	p.count = m.Count
	if onBus {
		p.onBus = time.Now()
	}
	if fresh {
		first = p.clock == 0
		p.at, p.clock, p.backlog = time.Now(), events.Millis(m.Clock), m.ready()
	}
	l.mu.Unlock()
	if first {
		l.m.place.wake.Notify() // which may have waited for it
	}
	l.m.offers.Wake()
	return first
}

// see takes the present nodes from the view, with the loads that their keys carry.
func (l *load) see() {
	for id, n := range l.m.view.Load().Nodes {
		m, err := command.ReadLenient[loadMessage](n.Load)
		if err != nil || m.Node != id || id == l.m.session.ID {
			continue
		}
		if l.take(m, n.Modified > l.m.session.Revision, false) && l.m.bus != nil {
			l.greet() // when it joined, this node may have sent its load over the bus alone
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.m.view.Load() // the latest, if another goroutine has seen that
	for id, p := range l.peers {
		if _, present := v.Nodes[id]; !present && (p.present || time.Since(p.at) > clockAge) {
			delete(l.peers, id)
		}
	}
	for id := range v.Nodes {
		if id == l.m.session.ID {
			continue
		}
		p := l.peers[id]
		if p == nil {
			p = &peer{at: time.Now()}
			l.peers[id] = p
		}
		if !p.present {
			p.since = time.Now()
			p.present = true
			l.greet()
		}
	}
}

// readyAt returns the ready tasks by behavior of a shard, as its owner reported after a time; nil when that is not
// known. The caller must not change it.
func (l *load) readyAt(shard int, owner string, after time.Time) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.peers[owner]; p != nil && p.present && time.Since(p.at) <= loadAge && p.at.After(after) {
		return p.backlog[shard]
	}
	return nil
}

// readyHere returns the ready tasks by behavior of the shards served here.
func (l *load) readyHere() map[string]int {
	ready := map[string]int{}
	for _, o := range l.m.place.served() {
		for behavior, n := range o.Backlog() {
			ready[behavior] += n
		}
	}
	return ready
}
