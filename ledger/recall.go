package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/events"
	"taskledger/ledger/internal/earlier"
	"taskledger/store"
	"taskledger/task"
)

const (
	// nearEntries bounds the entries that are read for an event whose task is not remembered, before the owner is asked.
	nearEntries = 16
	// farEntries bounds the entries that are read in all where the owner does not answer and events of many tasks are
	// yielded. The beginning of a task that lies farther back stays unknown.
	farEntries = 1024
	// askForMany bounds the wait for an owner where events of many tasks are yielded: the others are not to wait long for
	// one that hangs.
	askForMany = time.Second
	// askAgainAfter is the time for which no owner is asked after one did not answer.
	askAgainAfter = time.Minute
)

// recall adds to events what earlier ones of their tasks say. It remembers the unfinished tasks that it met last, and
// reads of the others what came before: the entries that hold their events, from the one given back, and then the task
// as its owner has it.
type recall struct {
	reader  *Reader
	owners  Owners
	one     bool // all events belong to one task: all of a life may be read for what came before, and nothing is forgotten
	met     earlier.Memory
	entry   *events.Entry // the last that was read
	silence time.Time     // no owner is asked before
}

func newRecall(r *Reader, o Owners) *recall {
	return &recall{reader: r, owners: o}
}

// newRecall tells of the events of this life alone.
func (f *life) newRecall() *recall { return &recall{reader: f.reader, owners: f, one: true} }

// tell returns an event of a shard with what came before it. Events of a task come in order. An error means that what
// came before could not be read this time; the same event can be told again.
func (r *recall) tell(ctx context.Context, shard int, ev *events.Event) (Event, error) {
	if ev.Task == "" {
		return Event{Event: *ev}, nil
	}
	k, met := r.met.Of(ev.Task)
	if !met && ev.Prev != 0 {
		var err error
		if k, err = r.lookUp(ctx, shard, ev); err != nil {
			return Event{}, fmt.Errorf("what came before event %s: %w", ev.Position, err)
		}
	}
	e := tell(&k, ev)
	if earlier.IsLast(ev) && !r.one {
		r.met.Forget(ev.Task)
		return e, nil
	}
	r.met.Keep(ev.Task, k)
	return e, nil
}

// lookUp finds what is known before an event.
func (r *recall) lookUp(ctx context.Context, shard int, ev *events.Event) (earlier.Known, error) {
	l := &lookup{recall: r, shard: shard, task: ev.Task, Search: earlier.Begin(ev.Prev)}
	err := l.back(ctx, nearEntries)
	if err == nil {
		err = l.far(ctx, ev.Position.Ref)
	}
	return l.Known, err
}

// lookup is the search for what is known of a task.
type lookup struct {
	*recall
	shard int
	task  events.TaskID
	earlier.Search
}

// unlessGone returns an error but for one which means that an entry cannot be read any more.
func unlessGone(err error) error {
	if errors.Is(err, store.ErrTrimmed) || errors.Is(err, events.ErrDamaged) {
		return nil
	}
	return err
}

// back reads from the next event back to the beginning of the life, so many entries at most. It goes no further than
// what is still there.
func (l *lookup) back(ctx context.Context, entries int) error {
	for ; l.Next != 0 && entries > 0; entries-- {
		if l.entry == nil || int(l.entry.Shard) != l.shard || l.entry.Number != l.Next.Entry() {
			rec, err := l.reader.Entry(ctx, l.shard, l.Next.Entry())
			if err == nil {
				l.entry, err = events.Decode(rec.Data)
			}
			if err != nil {
				l.entry = nil
				return unlessGone(err)
			}
		}
		events, err := linked(nil, l.entry, l.task, l.Next)
		if err != nil {
			return unlessGone(err)
		}
		for i := range events {
			l.Take(&events[i])
		}
	}
	return nil
}

// far goes on for an event where the entries that are near have not told everything: it asks the owner, and then reads.
func (l *lookup) far(ctx context.Context, at events.Ref) error {
	if l.Next != 0 {
		if err := l.ask(ctx, at); err != nil {
			return err
		}
	}
	if l.Next == 0 {
		return nil
	}
	left := farEntries - nearEntries
	for ev, err := range l.reader.back(ctx, l.shard, l.task, l.Next) {
		if err != nil {
			return unlessGone(err)
		}
		l.Take(ev)
		if left--; l.Next == 0 || left <= 0 && !l.one {
			break
		}
	}
	return nil
}

// ask asks the owner for the task, which knows it if the life of the event has not been forgotten.
func (l *lookup) ask(ctx context.Context, at events.Ref) error {
	if time.Now().Before(l.silence) {
		return nil
	}
	within := askForMany
	if l.one {
		within = askOwnersFor
	}
	ask, cancel := context.WithTimeout(ctx, within)
	t, err := l.owners.Task(ask, l.task)
	cancel()
	if err != nil {
		if !errors.Is(err, task.ErrNotFound) {
			l.silence = time.Now().Add(askAgainAfter)
		}
		return nil
	}
	if at < t.Created || at > t.Last {
		return nil
	}
	l.Behavior(t.Kind.Behavior)
	switch {
	case l.Attempt:
		l.Next = 0
	case t.Started < at: // no attempt has begun since, and the event may end that one
		l.Next = t.Started
		err = l.back(ctx, 1)
		l.Next = 0
	}
	return err
}
