package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/itemcommand"
	"taskledger/engine/internal/itemwait"
	"taskledger/engine/internal/notice"
	"taskledger/engine/internal/outcome"
	"taskledger/engine/internal/shardclock"
	"taskledger/engine/internal/slots"
	"taskledger/engine/internal/tally"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// owner is the one writer of a shard's journal. Its goroutine decides the commands that have gathered, commits their
// events as one entry, and only then performs the effects; while the entry is under way commands only gather. So its
// memory is, at every turn, exactly the committed state.
type owner struct {
	m         *member
	ownership store.Ownership
	began     uint64 // number of the first entry that this ownership may write
	log       *slog.Logger
	inbox     *inbox
	asked     atomic.Pointer[handOverRequest]
	stop      func()        // ends run
	stopped   chan struct{} // closed when the goroutine is gone

	// Owned by the goroutine.
	state      *projection.Shard
	clock      shardclock.Clock
	head       store.Head
	entry      events.Builder
	spare      mail
	offers     []*parkedOffer
	seen       map[projection.SenderLane]answered
	seenBefore map[projection.SenderLane]answered // when seen was begun anew
	turnOf     turn
	looking    looking
	blocked    bool               // a ready task waits for a slot of this node
	firsts     []*projection.Task // of each behavior with a ready task, while one is picked
	heads      []slots.Head       // of the behaviors with a task that waits for a slot
	free       []bool             // of heads, while a task is picked: there is a slot
	waits      bool               // among the owners that wait for a slot
	misfits    *command.Misfits   // what owners of the shard on this node could not store
	held       bool               // nothing could start in the last turn: the session may be over
	full       bool               // the store was, when the entry under way was last sent
	mishaps    *notice.Mishaps    // of the entry under way
	tally      *tally.Tally

	snapshot  *projection.Snapshot // being taken; nil = none
	covered   uint64               // entry of the last one begun
	tail      int64                // bytes of the entries after it
	covers    int64                // bytes of the tail that it is to cover, while it is being taken
	snapshots *snapshots
	trims     *trims
	searches  *searches
	proofs    proofs

	waiters  itemwait.Waiters // for items
	gotItems map[itemwait.Group]struct{}

	deciding atomic.Int64                   // since when, on the monotonic clock; 0 = waiting, for commands or for etcd
	running  atomic.Pointer[[]string]       // nodes with attempts
	backlog  atomic.Pointer[map[string]int] // ready tasks by behavior
	stats    ownerStats
}

// ownerStats counts what operators look at.
type ownerStats struct {
	entries, events, bytes, refused, bugs atomic.Int64
	head                                  atomic.Uint64
	live, tasks, liveBytes                atomic.Int64
	available, waiting, claimed           atomic.Int64 // items of task stores
}

// answered is the last batch of a lane that this owner has decided, recorded in the journal or not.
type answered struct {
	number  uint64
	answers []command.Answer
}

// parkedOffer is a standing offer that has not been answered.
type parkedOffer struct {
	delivery
	*command.Offer
	given   []*projection.Task // by the entry in the making
	bytes   int
	present bool // the node was seen when the latest other offer came
}

type handOverRequest struct {
	target string
	done   func(error)
}

// turn is what one entry will bring about once it is committed.
type turn struct {
	replies  []pendingReply
	starts   []command.Assignment // on this node
	given    []*parkedOffer
	outcomes []outcome.Outcome
	cancels  []nodeAttempt
	settings bool // they have changed
}

type pendingReply struct {
	delivery
	answers []command.Answer
}

type nodeAttempt struct {
	node string
	command.AttemptName
	by, reason string // of a cancel
}

func newOwner(m *member, o store.Ownership, have *loaded, stop func()) *owner {
	own := &owner{m: m, ownership: o, began: have.head.Number + 1, state: have.state, head: have.head, tail: have.tail,
		clock: shardclock.New(have.state.Time, time.Since(clockBase)), inbox: newInbox(), searches: newSearches(), stop: stop, misfits: &m.place.misfits[o.Shard], stopped: make(chan struct{}), seen: map[projection.SenderLane]answered{}}
	own.log, own.mishaps = m.log.With("shard", o.Shard), notice.NewMishaps(m.notices, o.Shard)
	own.snapshots, own.trims, own.tally = newSnapshots(own, have), newTrims(own), tally.New(m.cfg.Meter)
	own.publishView()
	return own
}

// run serves the shard until ctx ends, the shard is handed over, or it is lost; the last two by the error that is returned.
func (o *owner) run(ctx context.Context) error {
	defer close(o.stopped)
	defer o.m.exec.Leave(o.inbox)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.inbox.wake:
			o.inbox.gather()
		case <-timer.C:
		}
		if err := o.takeTurn(ctx); err != nil {
			return err
		}
		if o.takeSnapshot() {
			o.inbox.wake.Notify()
		}
		if wait, ok := o.untilDue(); ok {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		if req := o.asked.Swap(nil); req != nil {
			err := o.giveAway(ctx, req.target)
			req.done(err)
			if err == nil {
				return errHandedOver
			}
			o.log.InfoContext(ctx, "hand-over refused", "target", req.target, "err", err)
			if gone := o.stillOwner(ctx); gone != nil {
				return gone
			}
		}
	}
}

var errHandedOver = errors.New("shard was handed over")

// mayStartAgain is how often an owner whose session may be over looks whether it was renewed.
const mayStartAgain = 50 * time.Millisecond

// untilDue is how long the owner may sleep.
func (o *owner) untilDue() (time.Duration, bool) {
	if o.held && len(*o.backlog.Load()) > 0 { // what is ready was passed over
		return mayStartAgain, true
	}
	due, items := o.state.NextDue(), o.state.Stores().NextDue()
	if due == 0 && items == 0 {
		return 0, false
	}
	var least time.Duration
	if items == 0 || due != 0 && due <= items {
		if !o.m.mayStart() { // what is due stays due
			least = mayStartAgain
		}
	} else {
		due = items
	}
	return max(o.clock.Until(due, o.m.now(), time.Since(clockBase)), least), true
}

// now is the time of the shard.
func (o *owner) now() events.Millis { return o.clock.Now(o.m.now(), time.Since(clockBase)) }

// takeTurn answers the questions that have gathered, decides the rest, commits it and performs the effects.
func (o *owner) takeTurn(ctx context.Context) error {
	o.turns()
	defer o.deciding.Store(0)
	in := o.inbox.take(&o.spare)
	o.answer(in.lanes[command.LaneQuery]) // as long as all that the state has is committed
	began := time.Since(clockBase)
	now := o.clock.Now(o.m.now(), began)
	o.beginEntry(now)
	o.turnOf.reset()
	o.ripenItems(now, began)
	if len(o.seen) >= projection.MaxSenders { // not in mid-turn: until it is committed the journal does not know what was decided
		o.seenBefore, o.seen = o.seen, map[projection.SenderLane]answered{}
	}
	d := &command.Decider{State: o.state, Entry: &o.entry, Now: now, Wall: o.m.now(), Note: o.note, Misfits: o.misfits, Refusal: *o.m.brake.Load(), StoreFull: o.m.usage.Load().Full, LiveLimit: o.m.liveLimit(), ParamsMayGo: o.m.cfg.Trimming == TrimAll,
		Members: o.m.view.Load(), Self: o.ownership.Session.ID, Epoch: o.ownership.Revision, Began: o.began, OffersAnswered: o.closeOffers}

	for _, node := range in.lost {
		if !d.Lose(node) {
			o.inbox.lose(node) // the rest, with the next entry
		}
	}
	o.decideLane(d, command.LaneWork, in.lanes[command.LaneWork])
	o.decideLane(d, command.LaneSubmit, in.lanes[command.LaneSubmit])
	o.stats.refused.Add(int64(d.Stale))
	o.stats.bugs.Add(int64(len(d.Bugs)))
	for _, bug := range d.Bugs {
		o.log.ErrorContext(ctx, "a command was refused because of a bug: it was decided as its task's state does not allow", "err", bug)
	}
	d.ForgetStores()
	for _, offer := range in.lanes[command.LaneOffer] {
		o.park(offer)
	}
	if o.held = !o.m.mayStart(); !o.held {
		if o.state.Ripen(now) {
			o.clock.Hold(now, began) // what was ready stays ready when the wall clock is set back
		}
		o.assign(d)
	}
	if d.Err != nil {
		return o.abandon(fmt.Errorf("decide entry %d of shard %d: %w", o.head.Number+1, o.ownership.Shard, d.Err))
	}
	if len(o.entry.Entry.Events)+len(o.entry.Entry.Origins) > 0 {
		if err := o.commit(ctx, d.Highest); err != nil {
			return o.abandon(err)
		}
		o.clock.Hold(now, began)
		o.mishaps.Tell()
	}
	o.tally.Count(d.Stale, len(d.Bugs))
	o.perform()
	o.spare = in
	o.publishView()
	return nil
}

// turns says that the owner is not stuck.
func (o *owner) turns() { o.deciding.Store(int64(time.Since(clockBase)) | 1) }

// beginEntry begins the next entry.
func (o *owner) beginEntry(now events.Millis) {
	o.entry.Reset(events.Entry{
		Shard:  uint16(o.ownership.Shard),
		Number: o.head.Number + 1,
		Epoch:  o.ownership.Revision,
		Owner:  o.ownership.Session.ID,
		Time:   now,
		Prev:   o.state.Hash,
	})
}

// commit appends the entry, whose events go up to a kind. Nothing that depends on it has left the owner before.
func (o *owner) commit(ctx context.Context, highest events.Kind) error {
	data, err := o.entry.Seal()
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	o.deciding.Store(0)
	sent := time.Now()
	revision, err := o.append(ctx, data, highest)
	if err != nil {
		return damagedAt(o.head.Number+1, err)
	}
	o.turns()
	o.tally.Committed(len(o.entry.Entry.Events), time.Since(sent))
	o.committed(revision, len(data))
	return nil
}

// committed takes over the entry, which is in the journal.
func (o *owner) committed(revision int64, size int) {
	o.head = store.Head{Number: o.head.Number + 1, Revision: revision}
	o.state.Seal(&o.entry.Entry)
	o.stats.entries.Add(1)
	o.stats.events.Add(int64(len(o.entry.Entry.Events)))
	o.stats.bytes.Add(int64(size))
	o.tail += int64(size)
}

// abandon gives back the slots that were taken for starts which will not happen, and what the turn was to answer, for whoever answers
// instead. It returns why the owner ends.
func (o *owner) abandon(why error) error {
	for i := range o.turnOf.starts {
		o.m.exec.untake(o.turnOf.starts[i].Behavior)
	}
	for i := range o.turnOf.replies {
		o.inbox.put(o.turnOf.replies[i].delivery)
	}
	return o.misfits.Learn(&o.entry, why)
}

// perform carries out the effects of a committed entry: answers, then starts, then outcomes. None of them blocks.
func (o *owner) perform() {
	t := &o.turnOf
	if t.settings {
		o.m.learnSettings(*o.state.Settings())
	}
	var unproven []pendingReply
	for i := range t.replies {
		r := &t.replies[i]
		r.answers = itemcommand.WithData(o.state.Stores(), r.Commands, r.answers, o.claimed)
		switch {
		case o.recorded(r.Batch):
			r.reply(r.Batch, r.answers, true)
		case !o.m.mayRead(): // the session may be over: a later owner decides
		case r.tellsState():
			unproven = append(unproven, *r)
		default:
			r.reply(r.Batch, r.answers, false)
		}
	}
	o.replyOnceProven(unproven)
	for _, offer := range t.given {
		offer.reply(offer.Batch, command.EncodeAssignments(offer.given), true)
	}
	for i := range t.starts {
		o.m.exec.launch(o.m, o.ownership.Shard, t.starts[i])
	}
	for _, c := range t.cancels {
		o.m.cancelAttempt(o.ownership.Shard, c)
	}
	if len(t.outcomes) > 0 {
		o.m.announce(o.ownership.Shard, t.outcomes)
	}
	o.wakeItems()
}

// note collects the effects of an event while it is being decided.
func (o *owner) note(t *projection.Task, ev *events.Event) {
	o.mishaps.Note(t, ev)
	o.tally.Note(t, ev)
	switch b := ev.Body.(type) {
	case *events.Succeeded, *events.Failed, *events.Deleted, *events.Rescheduled:
		if out, ok := outcome.Of(t, ev); ok {
			o.turnOf.outcomes = append(o.turnOf.outcomes, out)
		}
	case *events.CancelRequested:
		o.turnOf.cancels = append(o.turnOf.cancels, nodeAttempt{t.Node, command.AttemptName{Task: t.ID, Started: t.Started}, ev.Asker.Principal, b.Reason})
	case *events.Paused, *events.Unpaused:
		o.turnOf.settings = true
	case *events.ItemAdded:
		o.itemChanged(ev, b.ID)
	case *events.ItemReplaced:
		o.itemChanged(ev, b.To)
	}
}

func (t *turn) reset() {
	clear(t.replies)
	clear(t.starts)
	clear(t.given)
	clear(t.outcomes)
	t.replies, t.starts, t.given, t.outcomes, t.cancels = t.replies[:0], t.starts[:0], t.given[:0], t.outcomes[:0], t.cancels[:0]
	t.settings = false
}

// decideLane decides batches until the entry is full; the rest waits for the next one.
func (o *owner) decideLane(d *command.Decider, lane uint8, batches []delivery) {
	for i, b := range batches {
		if d.Full(b.Batch) {
			o.inbox.putBack(lane, batches[i:])
			return
		}
		if answers, done := o.decided(b.Batch); done {
			if answers == nil && b.letter {
				answers = []command.Answer{} // nobody waits for them, but the letter is removed with its answer
			}
			if answers != nil {
				o.turnOf.replies = append(o.turnOf.replies, pendingReply{b, answers})
			}
			continue
		}
		o.turnOf.replies = append(o.turnOf.replies, pendingReply{b, o.decideBatch(d, b.Batch)})
	}
}

// decided returns the answers of a batch that was decided before, by this owner or an earlier one. It returns nil when a
// later one of the lane was: the sender no longer waits.
func (o *owner) decided(b *command.Batch) (answers []command.Answer, done bool) {
	lane := projection.SenderLane{Sender: b.Sender, Lane: b.Lane}
	if last, ok := o.lastSeen(lane); ok {
		if b.Number == last.number {
			return last.answers, true
		}
		return nil, b.Number < last.number
	}
	row := o.state.Decided(lane)
	if row == nil || b.Number > row.Number {
		return nil, false
	}
	if b.Number < row.Number {
		return nil, true
	}
	answers, err := command.DecodeAnswers(row.Answers)
	if err != nil {
		o.log.Error("recorded answers cannot be read", "sender", b.Sender, "number", b.Number, "err", err)
		return nil, true
	}
	return answers, true
}

// decideBatch decides every command of a batch.
func (o *owner) decideBatch(d *command.Decider, b *command.Batch) []command.Answer {
	if c := b.Barrier(); c != nil {
		return o.settle(b, c)
	}
	lane := projection.SenderLane{Sender: b.Sender, Lane: b.Lane}
	if b.Lane == command.LaneSubmit && o.state.Senders() >= projection.MaxSenders && o.state.Decided(lane) == nil { // nodes are few
		refused := slices.Repeat([]command.Answer{{Code: command.AnswerOverload, Text: "too many senders", Number: 60_000}}, len(b.Commands))
		o.tally.Refused(b.Commands, refused, o.state.Knows)
		return refused
	}
	answers := d.DecideBatch(b)
	o.tally.Refused(b.Commands, answers, o.state.Knows)
	o.remember(lane, b.Number, answers)
	return answers
}

func (o *owner) lastSeen(lane projection.SenderLane) (answered, bool) {
	if last, ok := o.seen[lane]; ok {
		return last, true
	}
	last, ok := o.seenBefore[lane]
	return last, ok
}

// remember keeps what was answered, so that a second copy of a batch gets the same answer even if the batch caused no event.
func (o *owner) remember(lane projection.SenderLane, number uint64, answers []command.Answer) {
	o.seen[lane] = answered{number, answers}
}

// publishView shows other goroutines what they may know of the state.
func (o *owner) publishView() {
	nodes := o.state.RunningNodes()
	o.running.Store(&nodes)
	backlog := map[string]int{}
	for behavior, n := range o.state.Backlog() {
		if !o.m.paused(behavior) { // no slot is needed for it
			backlog[behavior] = n
		}
	}
	old := o.backlog.Swap(&backlog)
	o.stats.head.Store(o.head.Number)
	o.stats.live.Store(int64(o.state.Live()))
	o.stats.tasks.Store(int64(o.state.Len()))
	o.stats.liveBytes.Store(o.state.LiveBytes())
	items := o.state.Stores().Counts()
	o.stats.available.Store(int64(items.Available))
	o.stats.waiting.Store(int64(items.Waiting))
	o.stats.claimed.Store(int64(items.Claimed))
	if old == nil || len(*old) > 0 || len(backlog) > 0 {
		o.m.backlogChanged()
	}
	if o.blocked {
		o.m.offers.wake.Notify()
	}
}
