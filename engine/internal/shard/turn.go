package shard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/notice"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// pendingEffects has the effects of the entry in the making, which happen once it is committed.
type pendingEffects struct {
	replies  []pendingReply
	starts   []command.Assignment // on this node
	filled   []*parkedOffer
	outcomes []outcome.Outcome
	cancels  []Cancel
	mishaps  *notice.Mishaps
	full     bool // the store was, when the entry was last sent
}

// pendingReply is a batch and its answers, which wait for the entry.
type pendingReply struct {
	Delivery
	answers []command.Answer
}

// takeTurn answers the questions that have gathered, decides the rest, commits it and performs the effects.
func (o *Owner) takeTurn(ctx context.Context) error {
	o.turns()
	defer o.published.deciding.Store(0)
	in := o.inbox.Take(&o.spare)
	o.answer(in.Lanes[command.LaneQuery]) // as long as all that the state has is committed
	began := time.Since(base)
	now := o.clock.Now(o.wall(), began)
	o.beginEntry(now)
	o.pending.reset()
	o.ringExtensions(now, began)
	o.prepare(now)
	// The memory does not begin anew in mid-turn: until a turn is committed the journal does not know what was
	// decided.
	if len(o.memory.seen) >= projection.MaxSenders {
		o.memory.before, o.memory.seen = o.memory.seen, map[projection.SenderLane]answered{}
	}
	d := o.decider(now)
	for _, node := range in.Lost {
		if !d.Lose(node) {
			o.inbox.Lose(node) // the rest, with the next entry
		}
	}
	o.decideLane(d, command.LaneWork, in.Lanes[command.LaneWork])
	o.decideLane(d, command.LaneSubmit, in.Lanes[command.LaneSubmit])
	o.published.refused.Add(int64(d.Stale))
	o.published.bugs.Add(int64(len(d.Bugs)))
	for _, bug := range d.Bugs {
		o.log.ErrorContext(ctx, "a command was refused because of a bug: it was decided as its task's state does not allow",
			"err", bug)
	}
	o.decideUnasked(d)
	for _, offer := range in.Lanes[command.LaneOffer] {
		o.park(offer)
	}
	if o.starts.barred = !o.cfg.Host.MayStart(); !o.starts.barred {
		o.ring(o.extensions.tasks, now, began)
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
		o.pending.mishaps.Report()
	}
	o.tally.Count(d.Stale, len(d.Bugs))
	o.perform()
	o.spare = in
	o.publishView()
	return nil
}

// decider returns what decides the commands of the entry in the making.
func (o *Owner) decider(now events.Millis) *command.Decider {
	return &command.Decider{
		State:       o.state,
		Entry:       &o.entry,
		Now:         now,
		Wall:        o.wall(),
		Note:        o.note,
		Follow:      o.follow,
		Stop:        o.stop,
		Oversized:   o.oversized,
		ParamsMayGo: o.cfg.Drops,
		Members:     o.cfg.Host.View(),
		Room: command.Room{
			Refusal:   o.cfg.Admission.Refusal(),
			StoreFull: o.cfg.Admission.Usage().Full,
			LiveLimit: o.cfg.Admission.LiveLimit(),
		},
		Ownership: command.Ownership{
			Shard:          o.shard(),
			Self:           o.ownership.Session.ID,
			Epoch:          o.ownership.Revision,
			Began:          o.began,
			OffersAnswered: o.closeOffers,
		},
	}
}

// turns says that the owner is not stuck.
func (o *Owner) turns() { o.published.deciding.Store(int64(time.Since(base)) | 1) }

// beginEntry begins the next entry.
func (o *Owner) beginEntry(now events.Millis) {
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
func (o *Owner) commit(ctx context.Context, highest events.Kind) error {
	data, err := o.entry.Seal()
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	o.published.deciding.Store(0)
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
func (o *Owner) committed(revision int64, size int) {
	o.head = store.Head{Number: o.head.Number + 1, Revision: revision}
	o.state.Seal(&o.entry.Entry)
	o.taking.tail += int64(size)
}

// abandon gives back the slots that were taken for starts which will not happen, and what the turn was to answer,
// for whoever answers instead. It returns why the owner ends.
func (o *Owner) abandon(why error) error {
	for i := range o.pending.starts {
		o.cfg.Slots.Untake(o.pending.starts[i].Behavior)
	}
	for i := range o.pending.replies {
		o.inbox.Deliver(o.pending.replies[i].Delivery)
	}
	return o.oversized.Learn(&o.entry, why)
}

// perform carries out the effects of a committed entry: answers, then starts, then outcomes. None of them blocks.
func (o *Owner) perform() {
	t := &o.pending
	var unproven []pendingReply
	for i := range t.replies {
		r := &t.replies[i]
		o.complete(r)
		switch {
		case o.recorded(r.Batch):
			r.Reply(r.Batch, r.answers, true)
		case !o.cfg.Host.MayStart(): // the session may be over: a later owner decides
		case r.tellsState():
			unproven = append(unproven, *r)
		default:
			r.Reply(r.Batch, r.answers, false)
		}
	}
	o.replyOnceProven(unproven)
	for _, offer := range t.filled {
		offer.Reply(offer.Batch, command.EncodeAssignments(o.state, offer.assigned), true)
	}
	for i := range t.starts {
		o.cfg.Effects.Launch(o.ownership.Shard, t.starts[i])
	}
	for _, c := range t.cancels {
		o.cfg.Effects.Cancel(o.ownership.Shard, c)
	}
	if len(t.outcomes) > 0 {
		o.cfg.Effects.Announce(o.ownership.Shard, t.outcomes)
	}
	o.performExtensions()
}

// note collects the effects of an event while it is being decided.
func (o *Owner) note(t *projection.Task, ev *events.Event) {
	o.pending.mishaps.Note(t, ev)
	o.tally.Note(t, ev)
	switch b := ev.Body.(type) {
	case *events.Succeeded, *events.Failed, *events.Deleted, *events.Rescheduled:
		if out, ok := outcome.Of(t, ev); ok {
			o.pending.outcomes = append(o.pending.outcomes, out)
		}
	case *events.CancelRequested:
		o.pending.cancels = append(o.pending.cancels, Cancel{
			Node:        t.Node,
			AttemptName: command.AttemptName{Task: t.ID, Started: t.Started},
			By:          ev.Caller.Principal,
			Reason:      b.Reason,
		})
	}
	for i := range o.extensions.all {
		x := &o.extensions.all[i]
		if x.Note != nil {
			x.Note(ev)
		}
		if x.Count != nil {
			x.Count(ev, o.tally)
		}
	}
}

// stop has the node of an attempt end it, once the entry in the making is committed.
func (o *Owner) stop(t *projection.Task, reason string) {
	o.pending.cancels = append(o.pending.cancels, Cancel{
		Node:        t.Node,
		AttemptName: command.AttemptName{Task: t.ID, Started: t.Started},
		Reason:      reason,
	})
}

func (t *pendingEffects) reset() {
	clear(t.replies)
	clear(t.starts)
	clear(t.filled)
	clear(t.outcomes)
	t.replies = t.replies[:0]
	t.starts = t.starts[:0]
	t.filled = t.filled[:0]
	t.outcomes = t.outcomes[:0]
	t.cancels = t.cancels[:0]
}

// recorded reports whether the journal holds that a batch was decided, and how.
func (o *Owner) recorded(b *command.Batch) bool {
	row := o.state.Decided(projection.SenderLane{Sender: b.Sender, Lane: b.Lane})
	return row != nil && row.Number == b.Number
}

// tellsState reports whether answers that are not recorded rest on the state, which only the shard's owner can know.
// Answers to submits do. Answers to work do where an attempt is over, and not where a reconcile finds nothing to say.
func (r *pendingReply) tellsState() bool {
	return r.Batch.Lane == command.LaneSubmit ||
		slices.ContainsFunc(r.answers, func(a command.Answer) bool { return a.Code != command.AnswerOK || a.Data != nil })
}

// replyOnceProven gives answers that are not recorded when there is a proof; else the next owner answers.
func (o *Owner) replyOnceProven(replies []pendingReply) {
	if len(replies) == 0 {
		return
	}
	o.prover.prove(func(err error) {
		if err != nil {
			o.log.Info("answers are left to the shard's owner", "err", err)
			return
		}
		for i := range replies {
			replies[i].Reply(replies[i].Batch, replies[i].answers, false)
		}
	})
}
