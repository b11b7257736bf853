package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
)

const (
	loadSubject = "load"
	// loadEvery is the shortest time between two load messages; the first change is told at once.
	loadEvery = 20 * time.Millisecond
	// loadKeyEvery is the shortest time between two updates of the node key, which carries the load while there is no bus.
	loadKeyEvery = 200 * time.Millisecond
	// loadAge is how long a load message is believed.
	loadAge = 10 * time.Second
	// clockLimit is how far a node's clock may be off its peers' before it must not own shards: entry time drives retention.
	clockLimit = time.Minute
	// clockWarning is from which drift on operators are told.
	clockWarning = time.Second
)

// load tells the other nodes which ready tasks wait in the shards served here, and keeps what they tell.
type load struct {
	m    *member
	wake chan struct{}

	mu     sync.Mutex
	peers  map[string]peerLoad // by session id
	told   bool                // the last message said that something waits
	warned bool
}

type peerLoad struct {
	at      time.Time
	backlog map[int]map[string]int // ready tasks by shard and behavior
	drift   time.Duration          // its clock less ours
}

func newLoad(m *member) *load {
	return &load{m: m, wake: make(chan struct{}, 1), peers: map[string]peerLoad{}}
}

func (l *load) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run tells of every change, the first at once, and every few seconds in any case.
func (l *load) run(ctx context.Context) error {
	regular := time.NewTicker(loadAge / 4)
	defer regular.Stop()
	for {
		force := false
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		case <-regular.C:
			force = true
			l.checkClock(ctx)
		}
		pause := l.tell(ctx, force)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// tell sends the backlog, if there is one or was one, and returns how long to keep silent.
func (l *load) tell(ctx context.Context, force bool) time.Duration {
	data, busy := l.encode()
	l.mu.Lock()
	changed := busy || l.told
	l.told = busy
	l.mu.Unlock()
	if !changed && !force {
		return 0
	}
	m := l.m
	if m.bus != nil && m.router.connected.Load() {
		m.router.hint(loadSubject, "", data)
		return loadEvery
	}
	if !changed {
		return 0
	}
	info := m.key()
	info.Load = data
	if err := m.store.Update(ctx, m.session, info); err != nil && ctx.Err() == nil {
		m.log.WarnContext(ctx, "load is not told", "err", err)
	}
	return loadKeyEvery
}

func (l *load) encode() (data []byte, busy bool) {
	var rows wire.Writer
	n := 0
	for _, o := range l.m.place.served() {
		for behavior, ready := range *o.backlog.Load() {
			rows.Array(3)
			rows.Int(int64(o.ownership.Shard))
			rows.Text(behavior)
			rows.Int(int64(ready))
			n++
		}
	}
	var w wire.Writer
	w.Array(3)
	w.Text(l.m.session.ID)
	w.Int(int64(l.m.now()))
	w.Array(n)
	w.B = append(w.B, rows.B...)
	return w.B, n > 0
}

func (l *load) onMessage(msg Message) { l.hear(msg.Data) }

// hear takes a load message from the bus, or from a node key.
func (l *load) hear(data []byte) {
	node, clock, backlog, err := decodeLoad(data)
	if err != nil || node == l.m.session.ID {
		return
	}
	p := peerLoad{at: time.Now(), backlog: backlog, drift: time.Duration(clock-l.m.now()) * time.Millisecond}
	l.mu.Lock()
	l.peers[node] = p
	l.mu.Unlock()
	l.m.offers.ring()
}

func decodeLoad(data []byte) (node string, clock events.Millis, backlog map[int]map[string]int, err error) {
	r, err := scanned(data)
	if err != nil {
		return "", 0, nil, err
	}
	r.ArrayOf(3)
	node, clock = r.Text(), events.Millis(r.Int())
	backlog = map[int]map[string]int{}
	for range r.Array() {
		r.ArrayOf(3)
		shard, behavior, ready := r.Int(), r.Text(), int(r.Int())
		if shard < 0 || shard >= maxShards {
			r.Fail("load of shard %d", shard)
		}
		if r.Err() != nil {
			break
		}
		if backlog[int(shard)] == nil {
			backlog[int(shard)] = map[string]int{}
		}
		backlog[int(shard)][behavior] = ready
	}
	return node, clock, backlog, r.Close()
}

// hearKeys takes the loads that node keys carry, and forgets the nodes that are gone.
func (l *load) hearKeys(v *Membership) {
	l.mu.Lock()
	for node := range l.peers {
		if _, present := v.Nodes[node]; !present {
			delete(l.peers, node)
		}
	}
	l.mu.Unlock()
	for _, n := range v.Nodes {
		if len(n.Load) > 0 {
			l.hear(n.Load)
		}
	}
}

// readyAt returns the ready tasks by behavior of a shard, as its owner told after a time; nil when that is not known. It must
// not be changed.
func (l *load) readyAt(shard int, owner string, after time.Time) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.peers[owner]; time.Since(p.at) <= loadAge && p.at.After(after) {
		return p.backlog[shard]
	}
	return nil
}

// readyHere returns the ready tasks by behavior of the shards served here.
func (l *load) readyHere() map[string]int {
	ready := map[string]int{}
	for _, o := range l.m.place.served() {
		for behavior, n := range *o.backlog.Load() {
			ready[behavior] += n
		}
	}
	return ready
}

// checkClock lets other nodes ask for the shards served here while this node's clock is off, and keeps it from taking any.
func (l *load) checkClock(ctx context.Context) {
	m := l.m
	off := l.clockOff()
	if m.clockWrong.Swap(off) == off {
		return
	}
	m.log.ErrorContext(ctx, "whether the clock is right has changed; a node with a wrong one owns no shards", "off", off)
	if err := m.store.Update(ctx, m.session, m.key()); err != nil && ctx.Err() == nil {
		m.clockWrong.Store(!off) // tried again at the next look
	}
}

// clockOff reports that this node's clock is too far off the median of its own and its peers'.
func (l *load) clockOff() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	drifts := []time.Duration{0} // its own
	for _, p := range l.peers {
		if time.Since(p.at) < loadAge {
			drifts = append(drifts, p.drift)
		}
	}
	if len(drifts) < 3 { // of two nodes nobody can tell which one is wrong
		return false
	}
	slices.Sort(drifts)
	off := drifts[len(drifts)/2].Abs()
	if off > clockWarning && !l.warned {
		l.warned = true
		l.m.log.Warn("clock differs from the other nodes'", "by", drifts[len(drifts)/2])
	}
	return off > clockLimit
}
