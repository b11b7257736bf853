package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/events"
)

const (
	// reofferEvery is the shortest time that an offer stands before it is replaced by one of another size.
	reofferEvery = 20 * time.Millisecond
	// closedOffer is how long the answer to an offer may come after the answer to a later one. Through the store it never
	// comes: the later letter has replaced the earlier.
	closedOffer = 100 * time.Millisecond
	// repostEvery is how often an offer is posted again while there is no bus.
	repostEvery = 10 * time.Second
)

// offers parks free slots of this node with the owners of the shards that others serve: a standing offer reserves its
// slots until it is answered. How many a shard is offered follows from what it used of the last offer and from its
// backlog, as far as known. It lives as long as the node: offer numbers outlast sessions, and a later offer closes the
// earlier ones of its lane.
type offers struct {
	n     *Node
	wake  chan struct{}
	calls chan struct{} // wakes who calls the roll

	mu     sync.Mutex
	shards []shardOffers
	closed bool
	none   chan struct{} // closed, and nil again, when after withdraw the last offer with slots is answered

	short atomic.Bool // fewer slots are offered than wanted: a freed one matters
}

type shardOffers struct {
	number   uint64 // of the last offer made
	open     []openOffer
	want     int  // slots to offer next
	rollCall bool // the owner must be told what runs here, even if nothing does
	calling  int  // roll calls that are not answered
}

// openOffer is an offer whose answer has not come.
type openOffer struct {
	*flight
	slots  int
	detail []offeredBehavior
	closed time.Time // when a later one was first answered or acknowledged; zero: not yet
}

func newOffers(n *Node) *offers {
	return &offers{n: n, wake: make(chan struct{}, 1), calls: make(chan struct{}, 1), shards: make([]shardOffers, n.Client.cfg.Shards)}
}

func (of *offers) ring() {
	select {
	case of.wake <- struct{}{}:
	default:
	}
}

// hasten sends what stands again at once, through the store: the bus has been lost, and answers with it.
func (of *offers) hasten() {
	of.mu.Lock()
	for i := range of.shards {
		if last := of.shards[i].last(); last != nil {
			last.sent, last.patient = time.Time{}, false
		}
	}
	of.mu.Unlock()
	of.ring()
}

// slotFreed lets a freed slot be offered, if it is wanted.
func (of *offers) slotFreed() {
	if of.short.Load() {
		of.ring()
	}
}

// last is the offer that stands; nil without one.
func (s *shardOffers) last() *openOffer {
	if n := len(s.open); n > 0 && s.open[n-1].batch.number == s.number {
		return &s.open[n-1]
	}
	return nil
}

// close marks the first n open offers, after which a later one has reached the owner, as closed.
func (s *shardOffers) close(n int) {
	for i := range s.open[:n] {
		if s.open[i].closed.IsZero() {
			s.open[i].closed = time.Now()
		}
	}
}

// answeredUpTo is the number up to which every offer is answered.
func (s *shardOffers) answeredUpTo() uint64 {
	if len(s.open) > 0 {
		return s.open[0].batch.number - 1
	}
	return s.number
}

// ownerChanged makes the offer to a shard known to its new owner.
func (of *offers) ownerChanged(shard int) {
	of.mu.Lock()
	s := &of.shards[shard]
	s.rollCall = true
	var f *flight
	if last := s.last(); last != nil {
		f = last.flight
	}
	of.mu.Unlock()
	of.n.router.dispatch(f)
	of.ring()
}

// flightOf returns the offer of that number while it stands.
func (of *offers) flightOf(shard int, number uint64) *flight {
	of.mu.Lock()
	defer of.mu.Unlock()
	if last := of.shards[shard].last(); last != nil && last.batch.number == number {
		return last.flight
	}
	return nil
}

// answered takes the answer to an offer: assignments, or nothing; nil acknowledges that it is parked.
func (of *offers) answered(shard int, number uint64, answers []answer) {
	of.mu.Lock()
	s := &of.shards[shard]
	at := slices.IndexFunc(s.open, func(o openOffer) bool { return o.batch.number == number })
	if at < 0 {
		of.mu.Unlock()
		return
	}
	offer := s.open[at]
	if answers == nil { // and the earlier ones are closed, if their answers have got lost
		offer.patient, offer.sent = true, time.Now()
		s.close(at)
		of.mu.Unlock()
		return
	}
	given := of.accept(shard, answers)
	m := of.n.member.Load()
	if m == nil || m.session.ID != offer.batch.commands[0].(*offerCommand).Node {
		given = nil // attempts of a session that is over: their owner finds them lost
	}
	x := of.n.exec
	x.unreserve(offer.slots, offer.detail, given)
	s.open = slices.Delete(s.open, at, at+1)
	s.close(at)
	s.rollCall = true
	if len(given) > 0 {
		s.want = min(2*len(given), max(x.unused()/2, 1))
	}
	for i := range given { // before the lock is free: a roll call must not count the offer as answered and miss its attempts
		x.launch(m, shard, given[i])
	}
	of.tellNone()
	of.mu.Unlock()
	of.ring()
}

func (of *offers) accept(shard int, answers []answer) []assignment {
	if len(answers) != 1 || answers[0].code != answerOK {
		return nil
	}
	given, err := decodeAssignments(answers[0].data)
	if err != nil {
		of.n.cfg.Log.Error("assignments cannot be read", "shard", shard, "err", err)
		return nil
	}
	for i := range given {
		if of.n.exec.behaviors[given[i].behavior] == nil {
			of.n.cfg.Log.Error("assignment of a behavior that was not offered", "shard", shard, "behavior", given[i].behavior)
			return nil
		}
	}
	return given
}

// offersLoop keeps the offers of a session as they should be, until ctx ends.
func (m *member) offersLoop(ctx context.Context) error {
	ticker := time.NewTicker(busPatience)
	defer ticker.Stop()
	defer m.offers.reset()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.offers.wake:
		case <-ticker.C:
		}
		m.offers.adjust(m, time.Now())
	}
}

// withdraw stops making offers, as the node drains, and closes those that stand. The channel that it returns is closed
// when all are answered: nothing more will be assigned.
func (of *offers) withdraw(m *member) <-chan struct{} {
	of.mu.Lock()
	defer of.mu.Unlock()
	of.closed = true
	none := make(chan struct{})
	of.none = none
	for shard := range of.shards {
		if last := of.shards[shard].last(); last != nil && last.slots > 0 {
			of.send(m, shard, 0, nil)
		}
	}
	of.tellNone()
	return none
}

// unanswered returns the shards whose owners have not answered an offer with slots, or a roll call.
func (of *offers) unanswered() (shards []int) {
	of.mu.Lock()
	defer of.mu.Unlock()
	for i := range of.shards {
		if s := &of.shards[i]; s.calling > 0 || s.reserves() {
			shards = append(shards, i)
		}
	}
	return shards
}

// reserves reports whether an offer with slots is open.
func (s *shardOffers) reserves() bool {
	return slices.ContainsFunc(s.open, func(o openOffer) bool { return o.slots > 0 })
}

func (of *offers) tellNone() {
	for i := range of.shards {
		if of.none == nil || of.shards[i].reserves() {
			return
		}
	}
	close(of.none)
	of.none = nil
}

// reset forgets the offers of a session that is over. Their numbers stay used.
func (of *offers) reset() {
	of.mu.Lock()
	defer of.mu.Unlock()
	for i := range of.shards {
		s := &of.shards[i]
		for _, o := range s.open {
			of.n.exec.unreserve(o.slots, o.detail, nil)
		}
		s.open, s.want = nil, 0
	}
}

// foreignShard is a shard that another node serves.
type foreignShard struct{ shard, backlog int }

// adjust makes, repeats and replaces offers, for the longest backlogs first. When slots are short, here or for a backlog
// elsewhere, offers that stand unused give theirs back.
func (of *offers) adjust(m *member, now time.Time) {
	if !m.mayStart() {
		return
	}
	startable := m.exec.startable() // what waits for the end of others of its behavior is no backlog
	foreign := m.foreignShards(startable, now)
	total := m.exec.unused()
	of.mu.Lock()
	defer of.mu.Unlock()
	fair := max(1, total/max(1, len(foreign))) // what all can have at once
	base := max(1, fair/4)
	short := m.exec.wanted()       // somebody waits for slots that are offered elsewhere
	for shard := range of.shards { // first, lest a slot return to the shard that does without it
		s := &of.shards[shard]
		of.forget(s, now)
		if _, here := of.n.router.owners.Load(shard); here { // made before the shard was taken; its answer may have got lost
			of.repeatLate(s.last(), now)
		}
	}
	for _, f := range foreign {
		s := &of.shards[f.shard]
		last := s.last()
		want := max(base, min(s.want, fair), f.backlog)
		lacking := last != nil && f.backlog > 0 && len(last.detail) < len(m.exec.behaviors) && last.lacks(startable)
		short = short || lacking
		switch {
		case of.repeatLate(last, now), of.closed:
		case last.takesMore(f.backlog, now), lacking && last.old(now) && m.exec.couldAdd(last.detail):
			offered := of.offer(m, f.shard, want, f.backlog)
			short = short || offered < min(want, f.backlog)
			if offered == 0 && lacking && last.slots > 0 { // the slots that it holds are needed for another behavior
				of.replace(m, f.shard, 0)
			}
		}
	}
	of.tellNone()
	of.short.Store(short || len(startable) < len(m.exec.behaviors))
	if short && !of.closed {
		of.reclaim(m, foreign, base, now)
	}
}

// takesMore reports whether a shard can do with another offer than the one that stands, nil for none.
func (o *openOffer) takesMore(backlog int, now time.Time) bool {
	return o == nil || (o.slots == 0 || backlog > 2*o.slots) && o.old(now)
}

// lacks reports whether an offer leaves out one of the behaviors.
func (o *openOffer) lacks(behaviors map[string]Behavior) bool {
	for behavior := range behaviors {
		if !slices.ContainsFunc(o.detail, func(b offeredBehavior) bool { return b.Behavior == behavior }) {
			return true
		}
	}
	return false
}

// old reports whether an offer has stood long enough to be replaced.
func (o *openOffer) old(now time.Time) bool { return now.Sub(o.began) > reofferEvery }

// forget gives up offers that are closed and whose answer does not come. What they were given is missing from the roll
// call that follows, and released.
func (of *offers) forget(s *shardOffers, now time.Time) {
	s.open = slices.DeleteFunc(s.open, func(o openOffer) bool {
		over := !o.closed.IsZero() && now.Sub(o.closed) > closedOffer
		if over {
			of.n.exec.unreserve(o.slots, o.detail, nil)
			s.rollCall = true
			of.ringCalls()
		}
		return over
	})
}

// reclaim shrinks the offers that have stood unused for a while; where slots are fewer than shards, to nothing.
func (of *offers) reclaim(m *member, foreign []foreignShard, base int, now time.Time) {
	if m.exec.unused() < 2*len(foreign) {
		base = 0
	}
	for _, f := range foreign {
		s := &of.shards[f.shard]
		last := s.last()
		if last == nil || f.backlog > 0 || !last.old(now) || len(s.open) > 1 {
			continue
		}
		if last.slots > base || m.exec.limited(last.detail) {
			s.want = 0
			of.replace(m, f.shard, base)
		}
	}
}

// patience is how long an offer may stand before it is sent again. Without a bus its letter lies with the owner, and
// what answers it cannot get lost.
func (of *offers) patience(o *openOffer) time.Duration {
	if o.patient && !of.n.router.connected.Load() {
		return repostEvery
	}
	return o.flight.patience()
}

// repeatLate sends the offer that stands, nil for none, again when it is unanswered for long: by turns over the bus and
// through the store. It reports whether it did.
func (of *offers) repeatLate(last *openOffer, now time.Time) bool {
	if last == nil || now.Sub(last.sent) <= of.patience(last) {
		return false
	}
	viaStore := !last.patient
	last.sent, last.patient = now, viaStore
	if viaStore {
		of.n.router.detour(last.flight)
	} else {
		of.n.router.dispatch(last.flight)
	}
	return true
}

// offer reserves slots, as many as wanted and free, offers them and returns how many.
func (of *offers) offer(m *member, shard, want, backlog int) int {
	reserve := m.exec.reserve
	if backlog == 0 {
		reserve = m.exec.reserveIdle
	}
	slots, detail := reserve(want)
	if slots > 0 {
		of.send(m, shard, slots, detail)
	}
	return slots
}

// replace lets a smaller offer close the one that stands; its slots are free when the owner has answered it.
func (of *offers) replace(m *member, shard, want int) {
	slots, detail := 0, []offeredBehavior(nil)
	if want > 0 {
		slots, detail = m.exec.reserveIdle(want)
	}
	of.send(m, shard, slots, detail)
}

func (of *offers) send(m *member, shard, slots int, detail []offeredBehavior) {
	s := &of.shards[shard]
	s.number++
	c := &offerCommand{Node: m.session.ID, Lease: events.Millis(m.ttl.Milliseconds()), Slots: slots, Behaviors: detail}
	r := of.n.router
	f := newFlight(shard, &batch{r.sender, laneOffer, s.number, r.principal, []command{c}}, nil)
	s.open = append(s.open, openOffer{flight: f, slots: slots, detail: detail})
	r.dispatch(f)
}

// foreignShards returns the shards that other live nodes serve: the longest backlog of the behaviors first, then a
// different one every second.
func (m *member) foreignShards(behaviors map[string]Behavior, now time.Time) []foreignShard {
	v := m.view.Load()
	shards := m.cfgShards()
	all := make([]foreignShard, 0, shards)
	for i := range shards {
		shard := (i + int(now.Unix())) % shards
		owner := v.Owners[shard]
		if _, alive := v.Nodes[owner.Node]; alive && owner.Node != m.session.ID {
			all = append(all, foreignShard{shard, m.load.backlogOf(shard, behaviors)})
		}
	}
	slices.SortStableFunc(all, func(a, b foreignShard) int { return cmp.Compare(b.backlog, a.backlog) })
	return all
}
