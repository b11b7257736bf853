package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"taskledger/events"
	"taskledger/store"
)

// closeEntries bounds the distance between an event and the one before it at which the entries between are read along.
const closeEntries = 4

var errStopped = errors.New("the consumer has stopped")

// back yields the events of a life from the one at ref back to its first, newest first. It reads the store, many
// entries at once where the events stand close together, and then the archive for what was trimmed, each segment once.
func (r *Reader) back(
	ctx context.Context,
	shard int,
	id events.TaskID,
	ref events.Ref,
) iter.Seq2[*events.Event, error] {
	return func(yield func(*events.Event, error) bool) {
		w := &walk{r, shard, id, ref, func(ev *events.Event) bool { return yield(ev, nil) }}
		if err := w.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// walk goes back along the links between the events of a life.
type walk struct {
	reader *Reader
	shard  int
	id     events.TaskID
	next   events.Ref // the event to yield; 0 = the life has begun
	yield  func(*events.Event) bool
}

func (w *walk) run(ctx context.Context) (err error) {
	closely := false
	for w.next != 0 {
		from := w.next
		if closely {
			err = w.follow(w.reader.journal.Backward(ctx, w.shard, from.Entry()), closeEntries)
		} else {
			err = w.one(ctx)
		}
		switch {
		case errors.Is(err, store.ErrTrimmed) && w.reader.archive != nil:
			return w.archived(ctx)
		case err != nil:
			return err
		case w.next == from:
			return w.missing()
		}
		closely = w.next != 0 && from.Entry()-w.next.Entry() <= closeEntries
	}
	return nil
}

// one reads the entry of the next event alone.
func (w *walk) one(ctx context.Context) error {
	rec, err := w.reader.journal.Entry(ctx, w.shard, w.next.Entry())
	if err != nil {
		return err
	}
	return w.take(rec)
}

// follow takes the events from entries that come newest first, until the next one stands more than far entries back.
func (w *walk) follow(seq iter.Seq2[store.Record, error], far uint64) error {
	for rec, err := range seq {
		if err != nil {
			return err
		}
		if rec.Number != w.next.Entry() {
			continue
		}
		if err := w.take(rec); err != nil || w.next == 0 || rec.Number-w.next.Entry() > far {
			return err
		}
	}
	return nil
}

// take yields the events that an entry holds, from the next one back along their links.
func (w *walk) take(rec store.Record) error {
	e, err := events.Decode(rec.Data)
	if err != nil {
		return err
	}
	all, err := linked(nil, e, w.id, w.next)
	for i := range all {
		w.next = all[i].Prev
		if !w.yield(&all[i]) {
			return errStopped
		}
	}
	return err
}

// archived goes on in the archive.
func (w *walk) archived(ctx context.Context) error {
	written, err := w.reader.written(ctx, w.shard, w.next.Entry())
	if err != nil || !written {
		return cmp.Or(err, w.missing())
	}
	err = w.follow(w.reader.archive.FindArchived(ctx, w.shard, w.id, w.next.Entry()), math.MaxUint64)
	switch {
	case errors.Is(err, store.ErrNoArchive):
		return w.reader.unarchived(ctx, w.shard, w.next.Entry(), err)
	case err == nil && w.next != 0:
		return w.missing()
	}
	return err
}

func (w *walk) missing() error {
	return fmt.Errorf("%w: event %s is neither in the journal nor in the archive", store.ErrTrimmed,
		events.Position{Shard: uint16(w.shard), Ref: w.next})
}

// linked appends the events of a task that an entry holds, from the one at ref back along their links.
func linked(all []events.Event, e *events.Entry, id events.TaskID, ref events.Ref) ([]events.Event, error) {
	for ref.Entry() == e.Number && ref != 0 {
		if ref.Index() >= len(e.Events) || e.Events[ref.Index()].Task != id || e.Events[ref.Index()].Prev >= ref {
			return all, fmt.Errorf("%w: position %s is not its event", events.ErrDamaged,
				events.Position{Shard: e.Shard, Ref: ref})
		}
		all = append(all, e.Events[ref.Index()])
		ref = e.Events[ref.Index()].Prev
	}
	return all, nil
}
