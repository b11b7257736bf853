package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/store"
	"taskledger/task"
)

const (
	// recheckEvery is the interval at which the damage is checked for changes.
	recheckEvery = 2 * time.Second
	// reloadEvery is the least time between two reads of the whole shard while its damage seems unchanged, which is
	// also at least reloadShare times the duration of such a read.
	reloadEvery = 30 * time.Second
	reloadShare = 20
	// relapse is the time within which another quarantine of a shard means that the store has no damage to be
	// repaired.
	relapse = time.Minute
)

// quarantine serves a shard of this node that cannot be read: its journal is corrupt, or entries that the archive
// alone holds are not read yet. It answers all commands and questions with the reason, until that has changed. It
// decides nothing: what was decided before is not known.
type quarantine struct {
	p     *placement
	shard int
	since events.Millis
	inbox *shard.Inbox
	taken store.Ownership           // that the damage was met under
	knows func(*command.Batch) bool // that the journal holds a batch, as far as it goes; nil = it cannot be known
	tried func(*command.Batch) bool // that a write under way at the damage may hold a batch; nil = no write
	why   atomic.Pointer[string]
	owned atomic.Pointer[store.Ownership] // begun for the quarantine; nil = not yet

	// Of the check under way, one at a time.
	entry        uint64 // that is damaged; 0 = not known
	revision     int64  // of it at the last check; 0 = it was missing
	reload       time.Time
	lossRevision int64 // of the loss that an operator had declared at the last check; 0 = none
	cause        error // that was reported last
	advised      bool  // with a remedy that is known to help
}

// quarantine reports why the shard cannot be served until it is sound, and returns its state and an ownership to
// serve it under; or until it is lost, or the session over. left is the owner that has met the damage, nil when
// none began to serve.
func (p *placement) quarantine(
	ctx context.Context, o store.Ownership, why error, left *shard.Owner,
) (store.Ownership, *shard.Loaded, error) {
	q := newQuarantine(p, o, left)
	var at *shard.DamageError
	if errors.As(why, &at) {
		q.entry = at.Entry
	}
	short, cancel := context.WithTimeout(ctx, remedyTimeout)
	q.report(short, why)
	cancel()
	p.mu.Lock()
	p.broken[o.Shard] = q
	var first time.Duration
	if q.entry == 0 {
		first = p.relapsesLocked(o.Shard)
	}
	p.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.m.serveShard(ctx, o.Shard, q.inbox)
	p.m.sender.ServeHere(o.Shard, q.inbox)
	defer func() {
		p.mu.Lock()
		delete(p.broken, o.Shard)
		p.mu.Unlock()
		p.m.sender.ServeHere(o.Shard, nil)
		p.m.sender.OwnerChanged(o.Shard)
	}()
	return q.run(ctx, o, first)
}

func newQuarantine(p *placement, o store.Ownership, left *shard.Owner) *quarantine {
	q := &quarantine{
		p:     p,
		shard: o.Shard,
		since: p.m.now(),
		inbox: shard.NewInbox(),
		taken: o,
	}
	if left != nil { // its senders have sent no other copy
		q.inbox = left.Inbox()
		q.knows, q.tried = left.Recorded, left.Decided
	}
	return q
}

// relapsesLocked returns the wait before the first check of a shard of which no entry is known to be damaged: none,
// unless a check has just found it sound in vain.
func (p *placement) relapsesLocked(shard int) time.Duration {
	h := p.healed[shard]
	if time.Since(h.at) > relapse {
		h.wait = 0
	} else {
		h.wait = min(max(2*h.wait, recheckEvery), relapse)
	}
	p.healed[shard] = h
	return h.wait
}

// healing holds when a shard was last found sound again, and how long the check before that was put off.
type healing struct {
	at   time.Time
	wait time.Duration
}

// report logs and remembers why the shard cannot be served, and the remedy.
func (q *quarantine) report(ctx context.Context, why error) {
	remedy, known := q.p.m.remedy(ctx, q.shard, q.entry, why)
	q.cause, q.advised = why, known
	text := fmt.Sprintf("%v; remedy: %s", why, remedy)
	if old := q.why.Swap(&text); old == nil || *old != text {
		q.p.m.log.ErrorContext(ctx, "shard is quarantined", "shard", q.shard, "err", why, "remedy", remedy)
	}
}

type recheck struct {
	have *shard.Loaded // the shard is sound; nil = it is not
	err  error         // it is not this node's any more
}

func (q *quarantine) run(
	ctx context.Context, o store.Ownership, wait time.Duration,
) (store.Ownership, *shard.Loaded, error) {
	begun, checked := make(chan error, 1), make(chan recheck, 1)
	q.p.m.spawn(func(context.Context) { begun <- q.begin(ctx, o) })
	timer := time.NewTimer(wait)
	defer timer.Stop()
	timer.Stop()
	var submits []shard.Delivery // before it had begun
	full := time.NewTicker(sender.BusTimeout)
	defer full.Stop()
	for {
		select {
		case <-ctx.Done():
			return o, nil, context.Cause(ctx)
		case err := <-begun:
			if err != nil {
				return o, nil, err
			}
			submits = q.refuse(ctx, submits)
			timer.Reset(wait)
		case <-q.inbox.Woken():
			in := q.inbox.Take(&shard.Mail{})
			for _, d := range in.Lanes[command.LaneQuery] {
				d.Reply(d.Batch, q.answers(d.Batch), false)
			}
			for _, d := range in.Lanes[command.LaneSubmit] {
				d.Reply(d.Batch, nil, false) // lest another copy is sent, which would leave its sender in doubt
				submits = latest(submits, d)
			}
			submits = q.refuse(ctx, submits)
			for _, d := range in.Lanes[command.LaneWork] { // it waits for an owner, with its sender
				d.Reply(d.Batch, nil, false)
			}
			for _, d := range in.Lanes[command.LaneOffer] {
				q.takeOffer(d)
			}
		case <-full.C:
			submits = q.refuse(ctx, submits)
		case <-timer.C:
			q.p.m.spawn(func(context.Context) { checked <- q.recheck(ctx) })
		case l := <-checked:
			if l.err != nil || l.have != nil {
				q.p.mu.Lock()
				q.p.healed[q.shard] = healing{time.Now(), q.p.healed[q.shard].wait}
				q.p.mu.Unlock()
				return *q.owned.Load(), l.have, l.err
			}
			timer.Reset(recheckEvery)
		}
	}
}

// begin begins an ownership of its own.
func (q *quarantine) begin(ctx context.Context, o store.Ownership) error {
	o, err := q.p.anew(ctx, o)
	if err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	q.owned.Store(&o)
	q.inbox.FenceOff(o)
	return nil
}

// recheck loads the shard to find out whether it is sound: at once when the damaged entry has changed or was given
// up, else now and then.
func (q *quarantine) recheck(ctx context.Context) recheck {
	v, err := q.p.m.refresh(ctx)
	if err != nil {
		return recheck{}
	}
	if v.Owners[q.shard].Revision != q.owned.Load().Revision {
		return recheck{err: fmt.Errorf("quarantine: %w", store.ErrFenced)}
	}
	now := time.Now()
	if changed, givenUp := q.changed(ctx), q.givenUp(ctx); !changed && !givenUp && now.Before(q.reload) {
		return recheck{}
	}
	have, err := q.p.m.loader.Load(ctx, q.shard)
	if err == nil {
		q.p.m.log.WarnContext(ctx, "shard is sound again", "shard", q.shard, "entries", have.Head.Number)
		return recheck{have: have}
	}
	pause := reloadShare * time.Since(now)
	if q.revision != 0 { // recheck sees the entry change, but not the cause of a missing one, which lies behind it
		pause = max(pause, reloadEvery)
	}
	if errors.Is(err, shard.ErrArchiveAway) {
		q.report(ctx, err)
		pause = 0
	}
	q.reload = time.Now().Add(pause)
	var at *shard.DamageError
	if shard.IsDamage(err) && (!errors.As(err, &at) || at.Entry != q.entry) { // else it is known, and perhaps better
		q.entry = 0
		if at != nil {
			q.entry = at.Entry
		}
		q.report(ctx, err)
	} else if !q.advised {
		q.report(ctx, q.cause)
	}
	return recheck{}
}

// changed reports whether the damaged entry was replaced since the last check.
func (q *quarantine) changed(ctx context.Context) bool {
	if q.entry == 0 {
		return false
	}
	rec, err := q.p.m.loader.Journal.Entry(ctx, q.shard, q.entry)
	if err != nil && !errors.Is(err, store.ErrTrimmed) {
		return false
	}
	before := q.revision
	q.revision = rec.Revision
	return q.revision != before
}

// givenUp reports whether an operator has declared a loss since the last check.
func (q *quarantine) givenUp(ctx context.Context) bool {
	l, err := q.p.m.loader.Losses.Loss(ctx, q.shard)
	if err != nil {
		return false
	}
	before := q.lossRevision
	q.lossRevision = l.Revision
	return q.lossRevision != before
}

// latest adds a delivery in the place of an earlier one of its sender that came the same way: a lane has one batch
// under way.
func latest(all []shard.Delivery, d shard.Delivery) []shard.Delivery {
	at := slices.IndexFunc(all, func(other shard.Delivery) bool {
		return other.Sender == d.Sender && other.Stored == d.Stored
	})
	switch {
	case at < 0:
		return append(all, d)
	case all[at].Number <= d.Number:
		all[at] = d
	}
	return all
}

// takeOffer acknowledges an offer, or answers the one that closes another: nothing is assigned here. A Reconcile
// finds the attempts that an earlier owner assigned.
func (q *quarantine) takeOffer(d shard.Delivery) {
	if c, ok := d.Commands[0].(*command.Offer); ok && c.Slots == 0 {
		d.Reply(d.Batch, []command.Answer{{}}, false)
		return
	}
	d.Reply(d.Batch, nil, false)
}

// refuse refuses submits, and returns those that have to wait until the quarantine has begun. While the store is
// full it cannot begin. Then it refuses the submits that no write can hold, except those from the mailbox, whose
// answers need room.
func (q *quarantine) refuse(ctx context.Context, submits []shard.Delivery) (rest []shard.Delivery) {
	if o := q.owned.Load(); o != nil {
		q.refuseAll(ctx, *o, submits)
		return nil
	}
	if !q.p.m.admission.usage.Load().Full {
		return submits
	}
	var certain []shard.Delivery
	for _, d := range submits {
		if d.Stored || q.tried != nil && q.tried(d.Batch) {
			rest = append(rest, d)
		} else {
			certain = append(certain, d)
		}
	}
	q.refuseAll(ctx, q.taken, certain)
	return rest
}

// refuseAll refuses submits, once a read has shown that nobody else may decide them.
func (q *quarantine) refuseAll(ctx context.Context, o store.Ownership, submits []shard.Delivery) {
	if len(submits) == 0 {
		return
	}
	q.p.m.spawn(func(context.Context) {
		v, err := q.p.m.refresh(ctx)
		if err != nil || v.Owners[q.shard].Revision != o.Revision {
			return // they are sent again, and another owner may decide them
		}
		for _, d := range submits {
			// No owner before has decided this copy.
			never := d.Posted > o.Revision || q.knows != nil && !q.knows(d.Batch)
			d.Reply(d.Batch, q.answers(d.Batch), never)
		}
	})
}

func (q *quarantine) answers(b *command.Batch) []command.Answer {
	why := *q.why.Load()
	text := fmt.Sprintf("shard %d is quarantined: %s", q.shard, why)
	answers := make([]command.Answer, len(b.Commands))
	for i, c := range b.Commands {
		switch c.(type) {
		case *command.Info:
			s := command.ShardReport{Problem: "quarantined: " + why, Shards: int64(q.p.m.shards)}
			if o := q.owned.Load(); o != nil {
				s.Owner, s.Epoch = o.Session.ID, o.Revision
			}
			answers[i].Data = message.Encode(s)
		case *command.Explain:
			answers[i] = explanation.Explanation{Why: task.WhyQuarantined, Since: q.since, Text: text}.Answer()
		default:
			answers[i] = command.Answer{Code: command.AnswerUnserved, Text: text}
		}
	}
	return answers
}
