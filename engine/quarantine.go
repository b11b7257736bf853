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
	// lookForRepair is the time between two looks whether what is damaged has changed.
	lookForRepair = 2 * time.Second
	// reloadEvery is the least time between two reads of the whole shard while its damage seems unchanged, and reloadShare how
	// many times as long as such a read takes.
	reloadEvery = 30 * time.Second
	reloadShare = 20
	// relapse is how soon after a quarantine another one means that there is no damage in the store to be repaired.
	relapse = time.Minute
)

// quarantine stands for a shard that is this node's and cannot be read: its journal makes no sense, or what the archive alone
// holds is not read yet. It says so to everybody who asks or wants
// something of the shard, until that has changed. It decides nothing: what was decided before is not known.
type quarantine struct {
	p     *placement
	shard int
	since events.Millis
	inbox *shard.Inbox
	taken store.Ownership           // that the damage was met under
	knows func(*command.Batch) bool // that the journal holds a batch, as far as it goes; nil = it cannot be known
	tried func(*command.Batch) bool // that a write under way when the damage was met may hold a batch; nil = there is none
	why   atomic.Pointer[string]
	owned atomic.Pointer[store.Ownership] // begun for the quarantine; nil = not yet

	// Of the look under way, one at a time.
	entry    uint64 // that is damaged; 0 = not known
	revision int64  // of it when it was looked at last; 0 = it was missing
	reload   time.Time
	given    int64 // revision of what an operator gave up, when it was looked at last; 0 = nothing
	cause    error // that was told last
	advised  bool  // with a remedy that is known to help
}

// quarantine tells why the shard cannot be served until it is sound, and returns its state and an ownership to serve it under; or
// until it is lost, or the session over. left is the owner that has met the damage, nil when none began to serve.
func (p *placement) quarantine(ctx context.Context, o store.Ownership, why error, left *shard.Owner) (store.Ownership, *shard.Loaded, error) {
	q := newQuarantine(p, o, left)
	var at *shard.DamageError
	if errors.As(why, &at) {
		q.entry = at.Entry
	}
	short, cancel := context.WithTimeout(ctx, remedyPatience)
	q.tell(short, why)
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

// relapsesLocked returns how long to wait before the first look at a shard of which no entry is known to be damaged: nothing,
// unless a look has just found it sound in vain.
func (p *placement) relapsesLocked(shard int) time.Duration {
	h := p.healed[shard]
	if time.Since(h.at) > relapse {
		h.wait = 0
	} else {
		h.wait = min(max(2*h.wait, lookForRepair), relapse)
	}
	p.healed[shard] = h
	return h.wait
}

// healing is when a shard was last found sound again, and how long the look before that was put off.
type healing struct {
	at   time.Time
	wait time.Duration
}

// tell makes known why the shard cannot be served, and what to do.
func (q *quarantine) tell(ctx context.Context, why error) {
	remedy, known := q.p.m.remedy(ctx, q.shard, q.entry, why)
	q.cause, q.advised = why, known
	text := fmt.Sprintf("%v; remedy: %s", why, remedy)
	if old := q.why.Swap(&text); old == nil || *old != text {
		q.p.m.log.ErrorContext(ctx, "shard is quarantined", "shard", q.shard, "err", why, "remedy", remedy)
	}
}

type look struct {
	have *shard.Loaded // the shard is sound; nil = it is not
	err  error         // it is not this node's any more
}

func (q *quarantine) run(ctx context.Context, o store.Ownership, wait time.Duration) (store.Ownership, *shard.Loaded, error) {
	begun, looked := make(chan error, 1), make(chan look, 1)
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
			q.p.m.spawn(func(context.Context) { looked <- q.look(ctx) })
		case l := <-looked:
			if l.err != nil || l.have != nil {
				q.p.mu.Lock()
				q.p.healed[q.shard] = healing{time.Now(), q.p.healed[q.shard].wait}
				q.p.mu.Unlock()
				return *q.owned.Load(), l.have, l.err
			}
			timer.Reset(lookForRepair)
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

// look reports whether the shard is sound: at once when what is damaged has changed or was given up, else now and then.
func (q *quarantine) look(ctx context.Context) look {
	v, err := q.p.m.look(ctx)
	if err != nil {
		return look{}
	}
	if v.Owners[q.shard].Revision != q.owned.Load().Revision {
		return look{err: fmt.Errorf("quarantine: %w", store.ErrFenced)}
	}
	now := time.Now()
	if changed, given := q.changed(ctx), q.givenUp(ctx); !changed && !given && now.Before(q.reload) {
		return look{}
	}
	have, err := q.p.m.loader.Load(ctx, q.shard)
	if err == nil {
		q.p.m.log.WarnContext(ctx, "shard is sound again", "shard", q.shard, "entries", have.Head.Number)
		return look{have: have}
	}
	pause := reloadShare * time.Since(now)
	if q.revision != 0 { // look sees when the entry changes; of a missing one the cause lies behind it, where look sees nothing
		pause = max(pause, reloadEvery)
	}
	if errors.Is(err, shard.ErrArchiveAway) {
		q.tell(ctx, err)
		pause = 0
	}
	q.reload = time.Now().Add(pause)
	var at *shard.DamageError
	if shard.IsDamage(err) && (!errors.As(err, &at) || at.Entry != q.entry) { // else it is known, and perhaps better
		q.entry = 0
		if at != nil {
			q.entry = at.Entry
		}
		q.tell(ctx, err)
	} else if !q.advised {
		q.tell(ctx, q.cause)
	}
	return look{}
}

// changed reports whether the damaged entry is another one than at the last look.
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

// givenUp reports whether an operator has given something up since the last look.
func (q *quarantine) givenUp(ctx context.Context) bool {
	l, err := q.p.m.loader.Losses.Loss(ctx, q.shard)
	if err != nil {
		return false
	}
	before := q.given
	q.given = l.Revision
	return q.given != before
}

// latest adds a delivery in the place of an earlier one of its sender that came the same way: of a lane one batch is under way.
func latest(all []shard.Delivery, d shard.Delivery) []shard.Delivery {
	at := slices.IndexFunc(all, func(other shard.Delivery) bool { return other.Sender == d.Sender && other.Letter == d.Letter })
	switch {
	case at < 0:
		return append(all, d)
	case all[at].Number <= d.Number:
		all[at] = d
	}
	return all
}

// takeOffer acknowledges an offer, or answers the one that closes another: nothing is given here. What an earlier owner gave is
// found by the roll call.
func (q *quarantine) takeOffer(d shard.Delivery) {
	if c, ok := d.Commands[0].(*command.Offer); ok && c.Slots == 0 {
		d.Reply(d.Batch, []command.Answer{{}}, false)
		return
	}
	d.Reply(d.Batch, nil, false)
}

// refuse turns submits down, and returns those that have to wait until the quarantine has begun. While the store is full it cannot
// begin. Then what no write can hold is turned down, but for letters, whose answers need room.
func (q *quarantine) refuse(ctx context.Context, submits []shard.Delivery) (rest []shard.Delivery) {
	if o := q.owned.Load(); o != nil {
		q.turnDown(ctx, *o, submits)
		return nil
	}
	if !q.p.m.admission.usage.Load().Full {
		return submits
	}
	var certain []shard.Delivery
	for _, d := range submits {
		if d.Letter || q.tried != nil && q.tried(d.Batch) {
			rest = append(rest, d)
		} else {
			certain = append(certain, d)
		}
	}
	q.turnDown(ctx, q.taken, certain)
	return rest
}

// turnDown refuses what was to be decided, once a read has shown that nobody else may decide it. What is reported of attempts
// waits for an owner.
func (q *quarantine) turnDown(ctx context.Context, o store.Ownership, submits []shard.Delivery) {
	if len(submits) == 0 {
		return
	}
	q.p.m.spawn(func(context.Context) {
		v, err := q.p.m.look(ctx)
		if err != nil || v.Owners[q.shard].Revision != o.Revision {
			return // they are sent again, and another owner may decide them
		}
		for _, d := range submits {
			never := d.Posted > o.Revision || q.knows != nil && !q.knows(d.Batch) // was this copy decided by an owner before
			d.Reply(d.Batch, q.answers(d.Batch), never)
		}
	})
}

func (q *quarantine) answers(b *command.Batch) []command.Answer {
	why := *q.why.Load()
	answers := make([]command.Answer, len(b.Commands))
	for i, c := range b.Commands {
		switch c.(type) {
		case *command.Info:
			s := command.ShardReport{Problem: "quarantined: " + why}
			if o := q.owned.Load(); o != nil {
				s.Owner, s.Epoch = o.Session.ID, o.Revision
			}
			answers[i].Data = message.Encode(s)
		case *command.Explain:
			answers[i] = explanation.Explanation{Why: task.WhyQuarantined, Since: q.since, Text: fmt.Sprintf("shard %d is quarantined: %s", q.shard, why)}.Answer()
		default:
			answers[i] = command.Answer{Code: command.AnswerUnserved, Text: fmt.Sprintf("shard %d is quarantined: %s", q.shard, why)}
		}
	}
	return answers
}
