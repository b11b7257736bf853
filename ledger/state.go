package ledger

import (
	"context"
	"fmt"
	"time"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/taskview"
	"taskledger/task"
)

// StateAt returns a task as it was at a time of the owners' clocks, with its parameters and result: the fold of its
// events up to then. The zero time means now. A finished task that is no longer kept is as its last event left it. It
// wraps task.ErrNotFound for a time before the task was created or after it was deleted, and store.ErrTrimmed if the
// beginning of its life is no longer there.
func (l *Ledger) StateAt(ctx context.Context, id events.TaskID, at time.Time) (task.Task, error) {
	t, err := l.FoldAt(ctx, id, at)
	if err != nil {
		return task.Task{}, err
	}
	if at.IsZero() {
		at = time.Now()
	}
	return taskview.Of(&t, l.cfg.Cluster.Shards, events.MillisOf(at)), nil
}

// FoldAt is StateAt, and returns the fold itself, for whoever computes with it.
func (l *Ledger) FoldAt(ctx context.Context, id events.TaskID, at time.Time) (projection.Task, error) {
	until := events.MillisOf(at)
	f, err := l.life(ctx, id, until)
	if err != nil {
		return projection.Task{}, fmt.Errorf("state of %s: %w", id, err)
	}
	return f.state(ctx, until, 0)
}

// StateAfter is StateAt for the moment after the event with the sequence number seq, 1, 2, 3 ..., of the present or
// last life. It wraps task.ErrNotFound if that life has no such event.
func (l *Ledger) StateAfter(ctx context.Context, id events.TaskID, seq uint64) (task.Task, error) {
	f, err := l.life(ctx, id, 0)
	var last *events.Event
	if err == nil {
		last, err = f.reader.Event(ctx, f.shard, f.last())
	}
	if err == nil && (seq == 0 || seq > last.Seq) {
		err = absent(fmt.Sprintf("no event %d, it has 1 to %d", seq, last.Seq))
	}
	if err != nil {
		return task.Task{}, fmt.Errorf("state of %s: %w", id, err)
	}
	t, err := f.state(ctx, 0, seq)
	if err != nil {
		return task.Task{}, err
	}
	return taskview.Of(&t, l.cfg.Cluster.Shards, t.Changed()), nil
}

// absent says what is not there, when it is no task: a task.ErrNotFound in other words.
type absent string

func (a absent) Error() string      { return string(a) }
func (absent) Is(target error) bool { return target == task.ErrNotFound }

// state folds the events of the life up to a time or an event; 0 = no such bound. It begins with the first event, or
// with a milestone.
func (f *life) state(ctx context.Context, until events.Millis, seq uint64) (t projection.Task, err error) {
	fold, at, done, err := f.from(ctx, until, seq)
	defer done()
	if err != nil {
		return t, fmt.Errorf("state of %s: %w", f.id, err)
	}
	if seq != 0 && at.seq == seq {
		return fold.Task(), nil
	}
	wanted := seq
	if seq != 0 {
		wanted = seq - at.seq
	}
	for ev, err := range f.oldest(ctx, at, wanted, true) {
		if err == nil && until != 0 && ev.At > until {
			break
		}
		if err == nil {
			err = addTo(fold, ev)
		}
		if err != nil {
			return t, fmt.Errorf("state of %s: %w", f.id, err)
		}
		at = after{ev.Position.Ref, ev.Seq}
		switch {
		case ev.Seq%stride == 0:
			f.mark(fold, at, false)
		case seq != 0 && ev.Seq == seq-1: // whoever looks at an event looks at what it has changed
			f.mark(fold, at, true)
		}
		if ev.Seq == seq {
			break
		}
	}
	f.mark(fold, at, true)
	if fold.Deleted() {
		return t, fmt.Errorf("state of %s: %w: it was deleted", f.id, task.ErrNotFound)
	}
	if t = fold.Task(); t.ID == "" {
		return t, fmt.Errorf("state of %s: %w at that time", f.id, task.ErrNotFound)
	}
	return t, nil
}

// from returns a fold of the life from where the state up to a time or an event is to be folded, and the event after
// which it goes on. The returned function must be called once the state was folded.
func (f *life) from(
	ctx context.Context,
	until events.Millis,
	seq uint64,
) (fold *projection.Life, at after, done func(), err error) {
	f.marks, done = nil, func() {}
	far := seq
	if seq == 0 {
		far = f.now.Seq // 0 where the owner does not know the life: those are many, and few are long
	}
	if f.milestones == nil || f.now.Created == 0 || far < stride {
		return projection.NewLife(), at, done, nil
	}
	of := f.milestones.of(lifeOf{f.id, f.now.Created})
	select {
	case of.folds <- struct{}{}:
		done = func() { <-of.folds }
	case <-ctx.Done():
		return nil, at, done, context.Cause(ctx)
	}
	f.marks = of
	last, found := f.milestones.latest(of, func(one *milestone) bool {
		return one.ref <= f.last() && (seq == 0 || one.seq <= seq) && (until == 0 || one.mark.At() <= until)
	})
	if !found {
		return projection.NewLife(), at, done, nil
	}
	return last.mark.Resume(), after{last.ref, last.seq}, done, nil
}

// mark keeps a milestone after an event, where the life has any.
func (f *life) mark(fold *projection.Life, at after, recent bool) {
	if f.marks != nil {
		f.milestones.keep(f.marks, fold, at.ref, at.seq, recent)
	}
}

// addTo folds the next event of a life, which an item of a store has none of: History tells what happened to it.
func addTo(fold *projection.Life, ev *events.Event) error {
	switch of := ev.Kind().Record(); of {
	case events.OfTask:
	case events.OfItem:
		return absent("it is an item of a store, and has no state of a task")
	default:
		return absent("it is a record of its own, " + of.String() + ", and has no state of a task")
	}
	return damaged(fold.Add(ev))
}

// damaged wraps ErrDamaged for a stored event that cannot be folded.
func damaged(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", events.ErrDamaged, err)
	}
	return nil
}
