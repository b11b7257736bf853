package worker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/signal"
	"taskledger/events"
)

const (
	// closedOffer bounds the wait for the answer to an offer once a later one was answered. Through the store it never
	// comes: the later mailbox message has replaced the earlier one.
	closedOffer = 100 * time.Millisecond
	// repostEvery is the interval at which an offer is posted again while there is no bus.
	repostEvery = 10 * time.Second
	// abandonAfter is the wait for the answer to an offer that closes another. After that both are given up.
	abandonAfter = 500 * time.Millisecond
	// usualMost bounds what counts as a usual answer time: an offer may have waited for the end of a fault. For three
	// times as long an offer of which nothing is heard may be on its way.
	usualMost = time.Second
)

// Offers parks free slots of this node with the owners of the shards that others serve: a standing offer reserves
// its slots until it is answered. How many a shard is offered follows from what it used of the last offer and from
// its backlog, as far as known. While a shard anywhere has more ready work than there are free slots, offers that
// stand unanswered are closed, and slots are offered to shards with ready work only. It lives as long as the node:
// offer numbers outlast sessions, and a later offer closes the earlier ones of its lane.
//
// An offer may be given up at any time: attempts that it still brings are missing from the next Reconcile, and
// released.
type Offers struct {
	cfg          Config
	x            *Executor
	session      atomic.Pointer[Session] // the present one; nil between sessions
	wake         signal.Signal
	reconcileNow signal.Signal // wakes RunReconcile

	mu           sync.Mutex // unlocked by unlock where something may have been sent
	shards       []shardOffers
	outbox       []departure
	unresponsive map[string]time.Time // by owner, since when it does not answer; its earlier reports count no more
	abroad       uint64               // slots offered although shards here had work, at most as many as have started here
	closed       bool
	made         time.Time     // of what is decided under this lock, by the wall clock; set by lock
	none         chan struct{} // closed, and nil again, when after withdraw the last offer with slots is answered

	usual time.Duration // mean time until an offer is answered, acknowledged or posted, or its post fails
	short atomic.Bool   // there is more ready work than free slots: a freed one matters
}

// departure is an offer that is to be sent, through the store or the best way there is.
type departure struct {
	*sender.Flight
	viaStore bool
}

// lock begins a change that may make offers: their time is read before, by a function of the caller's.
func (of *Offers) lock() {
	made := of.cfg.Now()
	of.mu.Lock()
	of.made = made
}

// unlock ends a change of the offers, and sends what it decided to send: sending may wait for the bus.
func (of *Offers) unlock() {
	leaving := of.outbox
	of.outbox = nil
	of.mu.Unlock()
	for _, d := range leaving {
		if d.viaStore {
			of.cfg.Sender.Detour(d.Flight)
		} else {
			of.cfg.Sender.Dispatch(d.Flight)
		}
	}
}

type shardOffers struct {
	number       uint64 // of the last offer made
	open         []openOffer
	want         int       // slots to offer next while no work is known
	unreconciled bool      // the owner needs a Reconcile, even if nothing runs here
	reconciling  int       // Reconciles without an answer
	helped       time.Time // when it was last offered slots for ready work
}

// openOffer is an offer whose answer has not come.
type openOffer struct {
	*sender.Flight
	slots   int
	detail  []command.OfferedBehavior
	stands  time.Time     // since when its owner can have it; zero: no acknowledgement came, and no post has ended
	posting time.Duration // time that its post took, usualMost at most; zero: it was not posted
	closed  time.Time     // when a later one was first answered or acknowledged; zero: not yet
}

// stood returns the longest time the owner can have had an offer. Without any acknowledgement that is unknown: the
// owner may be off the bus, and the mailbox message may wait for others. Nobody has an offer that goes through the
// store alone, as long as its post may take.
func (of *Offers) stood(o *openOffer, now time.Time) time.Duration {
	if !o.stands.IsZero() {
		return now.Sub(o.stands)
	}
	onItsWay := 3 * usualMost
	if o.Posting() && !of.cfg.Sender.Connected() {
		onItsWay += sender.PostTimeout
	}
	return max(0, now.Sub(o.Began)-onItsWay)
}

// enough returns how long the owner of an unanswered offer is waited for: three usual answer times, and least at
// least. An owner that only the store reaches is not judged by how fast others answer.
func (of *Offers) enough(o *openOffer, least time.Duration) time.Duration {
	return max(least, 3*of.usual, 3*o.posting)
}

// NewOffers returns the offers of an executor. None are made yet.
func NewOffers(x *Executor) *Offers {
	of := &Offers{
		cfg:          x.cfg,
		x:            x,
		wake:         signal.New(),
		reconcileNow: signal.New(),
		shards:       make([]shardOffers, x.cfg.Shards),
		unresponsive: map[string]time.Time{},
	}
	x.Freed, x.overbooked = of.slotFreed, of.wake.Notify
	return of
}

// Serve makes a session the one that offers are made for; nil ends that.
func (of *Offers) Serve(session *Session) { of.session.Store(session) }

// Wake makes Run adjust the offers: what is wanted, or known of the cluster, has changed.
func (of *Offers) Wake() { of.wake.Notify() }

// Hasten implements sender.Offers: what stands is sent again at once, through the store, since answers may have
// been lost with the bus.
func (of *Offers) Hasten() {
	of.mu.Lock()
	for i := range of.shards {
		if last := of.shards[i].last(); last != nil {
			last.Sent, last.Acknowledged = time.Time{}, false
		}
	}
	of.mu.Unlock()
	of.wake.Notify()
}

// slotFreed lets a freed slot be offered, if it is wanted.
func (of *Offers) slotFreed() {
	if of.short.Load() {
		of.wake.Notify()
	}
}

// last is the offer that stands; nil without one.
func (s *shardOffers) last() *openOffer {
	if n := len(s.open); n > 0 && s.open[n-1].Batch.Number == s.number {
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
		return s.open[0].Batch.Number - 1
	}
	return s.number
}

// OwnerChanged makes the offer to a shard known to its new owner. One in this process takes slots without an offer:
// there it is closed, once what an earlier owner answered has been answered again.
func (of *Offers) OwnerChanged(shard int) {
	here := of.cfg.Sender.ServesHere(shard)
	session := of.session.Load()
	of.lock()
	s := &of.shards[shard]
	s.unreconciled = true
	if last := s.last(); last != nil {
		of.outbox = append(of.outbox, departure{Flight: last.Flight})
		if here && session != nil {
			of.send(session, shard, 0, nil)
		}
	}
	of.unlock()
	of.wake.Notify()
}

// FlightOf returns the offer of that number while it stands.
func (of *Offers) FlightOf(shard int, number uint64) *sender.Flight {
	of.mu.Lock()
	defer of.mu.Unlock()
	if last := of.shards[shard].last(); last != nil && last.Batch.Number == number {
		return last.Flight
	}
	return nil
}

// Answered takes the answer to an offer: assignments, or nothing; nil acknowledges that it is parked.
func (of *Offers) Answered(shard int, number uint64, answers []command.Answer) {
	assigned := of.accept(shard, answers)
	of.mu.Lock()
	s := &of.shards[shard]
	at := slices.IndexFunc(s.open, func(o openOffer) bool { return o.Batch.Number == number })
	if at < 0 {
		of.mu.Unlock()
		return
	}
	offer := s.open[at]
	of.heardLocked(&s.open[at], offer.Began, time.Since(offer.Began))
	if answers == nil { // and the earlier ones are closed, if their answers have got lost
		s.waits(at)
		of.mu.Unlock()
		return
	}
	session := of.session.Load()
	if session == nil || session.ID != offer.Batch.Commands[0].(*command.Offer).Node {
		assigned = nil // attempts of a session that is over: their owner finds them lost
	}
	x := of.x
	x.Unreserve(offer.slots, offer.detail, assigned)
	s.open = slices.Delete(s.open, at, at+1)
	s.close(at)
	s.unreconciled = true
	if len(assigned) > 0 {
		s.want = min(2*len(assigned), max(x.Unused()/2, 1))
	}
	for i := range assigned { // under the lock: a Reconcile must not count the offer as answered and miss its attempts
		x.Launch(session, shard, assigned[i])
	}
	of.notifyNone()
	of.mu.Unlock()
	of.wake.Notify()
}

// Posted lets an offer wait for its answer once it was posted, or its post failed. A post is no answer of the owner.
func (of *Offers) Posted(f *sender.Flight) {
	of.mu.Lock()
	defer of.mu.Unlock()
	s := &of.shards[f.Shard]
	if at := slices.IndexFunc(s.open, func(o openOffer) bool { return o.Flight == f }); at >= 0 {
		o := &s.open[at]
		o.posting = min(time.Since(f.Queued), usualMost)
		of.heardLocked(o, time.Now(), o.posting)
		s.waits(at)
	}
}

// waits lets an open offer stand, and closes those before it.
func (s *shardOffers) waits(at int) {
	s.open[at].Acknowledged, s.open[at].Sent = true, time.Now()
	s.close(at)
}

// heardLocked lets an offer of which something is heard for the first time stand since then, and counts how long
// that took.
func (of *Offers) heardLocked(o *openOffer, since time.Time, took time.Duration) {
	if o.stands.IsZero() {
		o.stands = since
		of.usual += (min(took, usualMost) - of.usual) / 8
	}
}

func (of *Offers) accept(shard int, answers []command.Answer) []command.Assignment {
	if len(answers) != 1 || answers[0].Code != command.AnswerOK {
		return nil
	}
	assigned, err := command.DecodeAssignments(answers[0].Data)
	if err != nil {
		of.cfg.Log.Error("assignments cannot be read", "shard", shard, "err", err)
		return nil
	}
	for i := range assigned {
		if of.x.cfg.Behaviors[assigned[i].Behavior] == nil {
			of.cfg.Log.Error("assignment of a behavior that was not offered",
				"shard", shard, "behavior", assigned[i].Behavior)
			return nil
		}
	}
	return assigned
}

// Run keeps the offers of a session as they should be, until ctx ends.
func (of *Offers) Run(ctx context.Context, session *Session) error {
	timer := time.NewTimer(sender.BusTimeout)
	defer timer.Stop()
	defer of.reset()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-of.wake:
		case <-timer.C:
		}
		timer.Reset(of.adjust(session, time.Now()))
	}
}

// Withdraw stops making offers, as the node drains, and closes those that stand. The channel that it returns is closed
// when all are answered: nothing more will be assigned.
func (of *Offers) Withdraw(session *Session) <-chan struct{} {
	of.lock()
	defer of.unlock()
	of.closed = true
	none := make(chan struct{})
	of.none = none
	for shard := range of.shards {
		if last := of.shards[shard].last(); last != nil && last.slots > 0 {
			of.send(session, shard, 0, nil)
		}
	}
	of.notifyNone()
	return none
}

// Unanswered returns the shards whose owners have not answered an offer with slots, or a Reconcile.
func (of *Offers) Unanswered() (shards []int) {
	of.mu.Lock()
	defer of.mu.Unlock()
	for i := range of.shards {
		if s := &of.shards[i]; s.reconciling > 0 || s.slots() > 0 {
			shards = append(shards, i)
		}
	}
	return shards
}

// slots returns how many slots the open offers reserve.
func (s *shardOffers) slots() (n int) {
	for i := range s.open {
		n += s.open[i].slots
	}
	return n
}

func (of *Offers) notifyNone() {
	for i := range of.shards {
		if of.none == nil || of.shards[i].slots() > 0 {
			return
		}
	}
	close(of.none)
	of.none = nil
}

// reset forgets the offers of a session that is over. Their numbers stay used.
func (of *Offers) reset() {
	of.mu.Lock()
	defer of.mu.Unlock()
	for i := range of.shards {
		s := &of.shards[i]
		for _, o := range s.open {
			of.x.Unreserve(o.slots, o.detail, nil)
		}
		s.open, s.want = nil, 0
	}
	of.x.Promise(0)
}

// forget gives up offers that are closed and whose answer does not come, and all of a shard whose owner does not
// answer the one that closes them.
func (of *Offers) forget(s *shardOffers, owner string, now time.Time) {
	last := s.last()
	abandoned := last != nil && last.slots == 0 && of.stood(last, now) > of.enough(last, abandonAfter)
	if abandoned {
		of.unresponsive[owner] = now
	}
	of.giveUp(s, func(o *openOffer) bool {
		return abandoned || !o.closed.IsZero() && now.Sub(o.closed) > closedOffer
	})
}

// giveUp ends offers that are not answered. Attempts assigned to them are missing from the Reconcile that follows, and
// released.
func (of *Offers) giveUp(s *shardOffers, over func(*openOffer) bool) (slots int) {
	s.open = slices.DeleteFunc(s.open, func(o openOffer) bool {
		if !over(&o) {
			return false
		}
		slots += o.slots
		of.x.Unreserve(o.slots, o.detail, nil)
		s.unreconciled = true
		of.reconcileNow.Notify()
		return true
	})
	return slots
}

// timeout returns how long an offer may stand before it is sent again. Without a bus it lies in the mailbox of its
// shard, and its answer cannot get lost.
func (of *Offers) timeout(o *openOffer) time.Duration {
	if o.Acknowledged && !of.cfg.Sender.Connected() {
		return repostEvery
	}
	return o.Flight.Timeout()
}

// repeatLate sends the open offer, nil for none, again if it is unanswered for long, alternately over the bus and
// through the store. It reports whether it did.
func (of *Offers) repeatLate(last *openOffer, now time.Time) bool {
	if last == nil || now.Sub(last.Sent) <= of.timeout(last) {
		return false
	}
	viaStore := !last.Acknowledged
	last.Sent, last.Acknowledged = now, viaStore
	of.outbox = append(of.outbox, departure{last.Flight, viaStore})
	return true
}

// send makes an offer, which leaves when of is unlocked; it was locked by lock.
func (of *Offers) send(session *Session, shard, slots int, detail []command.OfferedBehavior) {
	s := &of.shards[shard]
	s.number++
	c := &command.Offer{
		Node:      session.ID,
		Lease:     events.Millis(session.Lease.Milliseconds()),
		Slots:     slots,
		Behaviors: detail,
	}
	f := of.cfg.Sender.NewOffer(shard, s.number, of.made, c)
	s.open = append(s.open, openOffer{Flight: f, slots: slots, detail: detail})
	of.outbox = append(of.outbox, departure{Flight: f})
}
