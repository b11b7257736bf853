package engine

import (
	"context"
	"sync"
	"time"

	"taskledger/events"
)

const (
	// reofferEvery is the shortest time between two offers to a shard of which neither was answered.
	reofferEvery = 20 * time.Millisecond
	// rollCallEvery is how often a node tells the owners what it runs.
	rollCallEvery = 2 * time.Second
)

// offers parks free slots of this node with the owners of shards that others serve: a standing offer reserves its slots
// until it is answered. Free slots are shared out by backlog. It lives as long as the node: offer numbers outlast
// sessions, and a later offer closes the earlier ones of its lane.
type offers struct {
	n    *Node
	wake chan struct{}

	mu     sync.Mutex
	shards []shardOffer
	closed bool
}

type shardOffer struct {
	number   uint64  // of the last offer made
	answered uint64  // every offer up to this one is answered or closed
	flight   *flight // the last offer, until it is answered
	slots    int     // reserved by it
	detail   []offeredBehavior
	rollCall bool // the owner must be told what runs here, even if nothing does
}

func newOffers(n *Node) *offers {
	return &offers{n: n, wake: make(chan struct{}, 1), shards: make([]shardOffer, n.Client.cfg.Shards)}
}

func (of *offers) ring() {
	select {
	case of.wake <- struct{}{}:
	default:
	}
}

// ownerChanged makes the offer to a shard known to its new owner.
func (of *offers) ownerChanged(shard int) {
	of.mu.Lock()
	s := &of.shards[shard]
	s.rollCall = true
	f := s.flight
	of.mu.Unlock()
	of.n.router.dispatch(f)
	of.ring()
}

// flightOf returns the offer of that number while it is unanswered.
func (of *offers) flightOf(shard int, number uint64) *flight {
	of.mu.Lock()
	defer of.mu.Unlock()
	if f := of.shards[shard].flight; f != nil && f.batch.number == number {
		return f
	}
	return nil
}

// answered takes the answer to an offer: assignments, or nothing; nil acknowledges that it is parked. Only the answer to
// the last offer counts; what an earlier one was given comes back by the roll call.
func (of *offers) answered(shard int, number uint64, answers []answer) {
	of.mu.Lock()
	s := &of.shards[shard]
	if s.flight == nil || s.flight.batch.number != number {
		of.mu.Unlock()
		return
	}
	if answers == nil {
		s.flight.patient, s.flight.sent = true, time.Now()
		of.mu.Unlock()
		return
	}
	offer := s.flight.batch.commands[0].(*offerCommand)
	given := of.accept(shard, answers)
	x := of.n.exec
	x.unreserve(s.slots, s.detail)
	s.flight, s.answered, s.slots, s.rollCall = nil, number, 0, true
	m := of.n.member.Load()
	if m == nil || m.session.ID != offer.Node {
		given = nil // attempts of a session that is over: their owner finds them lost
	}
	for i := range given {
		x.occupy(given[i].behavior)
	}
	of.mu.Unlock()
	for i := range given {
		x.launch(m, shard, given[i])
	}
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

// withdraw stops making offers: the node drains.
func (of *offers) withdraw() {
	of.mu.Lock()
	of.closed = true
	of.mu.Unlock()
}

// reset forgets the offers of a session that is over. Their numbers stay used.
func (of *offers) reset() {
	of.mu.Lock()
	defer of.mu.Unlock()
	for i := range of.shards {
		s := &of.shards[i]
		if s.flight != nil {
			of.n.exec.unreserve(s.slots, s.detail)
		}
		s.flight, s.slots, s.answered = nil, 0, s.number
	}
}

// adjust makes, repeats and replaces offers. An offer is replaced when its share has doubled, or when it holds slots
// that a backlog elsewhere wants.
func (of *offers) adjust(m *member, now time.Time) {
	if !m.mayStart() {
		return
	}
	shares := of.shares(m)
	of.mu.Lock()
	defer of.mu.Unlock()
	for shard := range of.shards {
		s := &of.shards[shard]
		share, foreign := shares[shard]
		switch {
		case s.flight != nil && now.Sub(s.flight.sent) > s.flight.patience():
			of.repeat(s, now)
		case !foreign || of.closed:
		case s.flight == nil && share > 0:
			of.offer(m, shard, share)
		case s.flight != nil && now.Sub(s.flight.began) > reofferEvery && (share >= 2*s.slots || 2*share < s.slots):
			of.n.exec.unreserve(s.slots, s.detail)
			s.slots = 0
			of.offer(m, shard, share)
		}
	}
}

// repeat sends an unanswered offer again, by turns over the bus and through the store.
func (of *offers) repeat(s *shardOffer, now time.Time) {
	f := s.flight
	viaStore := !f.patient
	f.sent, f.patient = now, viaStore
	if viaStore {
		of.n.router.detour(f)
	} else {
		of.n.router.dispatch(f)
	}
}

// offer reserves slots and offers them; share 0 closes the last offer without making room for work.
func (of *offers) offer(m *member, shard, share int) {
	s := &of.shards[shard]
	slots, detail := m.exec.reserve(share)
	if slots == 0 && s.flight == nil {
		return
	}
	s.number++
	c := &offerCommand{Node: m.session.ID, Lease: events.Millis(m.ttl.Milliseconds()), Slots: slots, Behaviors: detail}
	s.slots, s.detail = slots, detail
	r := of.n.router
	s.flight = newFlight(shard, &batch{r.sender, laneOffer, s.number, r.principal, []command{c}}, nil)
	r.dispatch(s.flight)
}

// shares divides the slots that are not busy among the shards that others serve, by their backlog of what this node
// runs; the shards served here take part as one.
func (of *offers) shares(m *member) map[int]int {
	total := m.exec.unused()
	v := m.view.Load()
	weights, sum := map[int]int{}, 0
	for shard := range m.cfgShards() {
		backlog := m.load.backlogOf(shard, m.exec.behaviors)
		owner := v.Owners[shard]
		if _, alive := v.Nodes[owner.Node]; alive && owner.Node != m.session.ID {
			weights[shard] = 1 + backlog
			sum += 1 + backlog
		} else if owner.Node == m.session.ID {
			sum += 1 + backlog
		}
	}
	shares := make(map[int]int, len(weights))
	for shard, w := range weights {
		shares[shard] = total * w / sum
		if shares[shard] == 0 && (w > 1 || total > 0 && total < sum && int(time.Now().Unix())%len(weights) == len(shares)) {
			shares[shard] = min(1, total)
		}
	}
	return shares
}

// rollCalls tells the owners what this node runs, every two seconds and when a shard has a new owner.
func (m *member) rollCalls(ctx context.Context) error {
	ticker := time.NewTicker(rollCallEvery)
	defer ticker.Stop()
	for {
		names := m.exec.names(m)
		for shard := range m.cfgShards() {
			if answered, due := m.offers.rollCallDue(shard, len(names[shard]) > 0); due {
				m.callRoll(shard, &rollCallCommand{m.session.ID, names[shard], answered})
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// rollCallDue reports up to which number offers are answered, and whether the owner must hear of this node.
func (of *offers) rollCallDue(shard int, busy bool) (answered uint64, due bool) {
	of.mu.Lock()
	defer of.mu.Unlock()
	s := &of.shards[shard]
	due = busy || s.rollCall
	s.rollCall = false
	return s.answered, due
}

func (m *member) callRoll(shard int, c *rollCallCommand) {
	m.router.send(shard, laneWork, c, func(a answer, err error) {
		if err != nil {
			return
		}
		over, err := decodeNames(a.data)
		if err != nil {
			m.log.Warn("answer to a roll call cannot be read", "shard", shard, "err", err)
			return
		}
		for _, name := range over {
			m.exec.cancelAttempt(shard, name.Started, ErrCancelled)
		}
	})
}
