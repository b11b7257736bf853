package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// History yields the events of the present life of a task, in order, or of its last life if it was deleted or is no longer kept. If the
// beginning of that life is no longer there, it yields the rest, and then store.ErrTrimmed. It yields task.ErrNotFound if there is
// nothing of the task.
func (l *Ledger) History(ctx context.Context, id events.TaskID) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		all, err := l.life(ctx, id, 0)
		if len(all) > 0 {
			before := newRecall(NewReader(l.cfg.Journal, l.cfg.Snapshots, l.cfg.Archive, l.cfg.Archived), l.cfg.Owners)
			for i := range all {
				if !yield(before.tell(ctx, int(all[i].Position.Shard), &all[i]), nil) {
					return
				}
			}
		}
		if err != nil {
			yield(Event{}, fmt.Errorf("history of %s: %w", id, err))
		}
	}
}

// life returns the events up to a time, oldest first, of the life that the task was in, or had last, at that time; 0 = now.
func (l *Ledger) life(ctx context.Context, id events.TaskID, until events.Millis) ([]events.Event, error) {
	if err := id.Validate(); err != nil {
		return nil, &store.InvalidError{Field: "id", Problem: err.Error()}
	}
	r, err := l.reader()
	if err != nil {
		return nil, err
	}
	shard := id.Shard(l.cfg.Cluster.Shards)
	last, err := l.lastEvent(ctx, r, shard, id, until)
	if err != nil {
		return nil, err
	}
	all, err := r.back(ctx, shard, id, last)
	slices.Reverse(all)
	if i := slices.IndexFunc(all, func(ev events.Event) bool { return until != 0 && ev.At > until }); i >= 0 {
		all = all[:i]
	}
	return all, err
}

// lastEvent asks the owner, and searches if the owner does not answer or does not know the life.
func (l *Ledger) lastEvent(ctx context.Context, r *Reader, shard int, id events.TaskID, until events.Millis) (events.Ref, error) {
	ask, cancel := context.WithTimeout(ctx, askOwnersFor)
	t, err := l.cfg.Owners.Task(ask, id)
	cancel()
	switch {
	case ctx.Err() != nil:
		return 0, err
	case err == nil && (until == 0 || t.CreatedAt <= until):
		return t.Last, nil
	}
	return r.last(ctx, shard, id, until)
}

// last finds the last event of the task up to a time, 0 = of all: in the store, then in the archive, newest first. It wraps
// ErrNotFound.
func (r *Reader) last(ctx context.Context, shard int, id events.TaskID, until events.Millis) (last events.Ref, err error) {
	first, err := r.First(ctx, shard)
	if err != nil {
		return 0, err
	}
	for rec, err := range r.Read(ctx, shard, first) {
		if err != nil {
			return 0, err
		}
		if ref, err := lastIn(rec, id, until); err != nil {
			return 0, err
		} else if ref != 0 {
			last = ref
		}
	}
	if last != 0 {
		return last, nil
	}
	if first == 1 {
		return 0, task.ErrNotFound
	}
	dropped := fmt.Errorf("%w in the entries from %d on; those before were dropped", task.ErrNotFound, first)
	if r.archive == nil {
		return 0, dropped
	}
	for rec, err := range r.archive.FindArchived(ctx, shard, id) {
		switch {
		case errors.Is(err, store.ErrNoArchive) && !r.archived:
			return 0, dropped
		case err != nil:
			return 0, r.unarchived(ctx, shard, first-1, err)
		}
		if ref, err := lastIn(rec, id, until); err != nil || ref != 0 {
			return ref, err
		}
	}
	return 0, task.ErrNotFound
}

// lastIn finds the last event of the task in an entry, up to a time; 0 = none.
func lastIn(rec store.Record, id events.TaskID, until events.Millis) (events.Ref, error) {
	if !bytes.Contains(rec.Data, []byte(id)) {
		return 0, nil
	}
	e, err := events.Decode(rec.Data)
	if err != nil {
		return 0, err
	}
	if until != 0 && e.Time > until {
		return 0, nil
	}
	for i, ev := range slices.Backward(e.Events) {
		if ev.Task == id {
			return events.RefOf(e.Number, i), nil
		}
	}
	return 0, nil
}

// back returns the events of a life from the one at ref back to its first, newest first. It reads the store, and then the archive for
// what was trimmed, each segment once.
func (r *Reader) back(ctx context.Context, shard int, id events.TaskID, ref events.Ref) (all []events.Event, err error) {
	for ref != 0 {
		rec, err := r.journal.Entry(ctx, shard, ref.Entry())
		if errors.Is(err, store.ErrTrimmed) && r.archive != nil {
			break
		}
		if err == nil {
			all, ref, err = appendLinked(all, rec, id, ref)
		}
		if err != nil {
			return all, err
		}
	}
	if ref == 0 {
		return all, nil
	}
	for rec, err := range r.archive.FindArchived(ctx, shard, id) {
		if errors.Is(err, store.ErrNoArchive) {
			return all, r.unarchived(ctx, shard, ref.Entry(), err)
		}
		if err == nil && rec.Number != ref.Entry() {
			continue
		}
		if err == nil {
			all, ref, err = appendLinked(all, rec, id, ref)
		}
		if err != nil || ref == 0 {
			return all, err
		}
	}
	return all, fmt.Errorf("%w: event %s is neither in the journal nor in the archive", store.ErrTrimmed,
		events.Position{Shard: uint16(shard), Ref: ref})
}

// appendLinked appends the events of a task that an entry holds, from the one at ref back along their links, and returns
// where these lead.
func appendLinked(all []events.Event, rec store.Record, id events.TaskID, ref events.Ref) ([]events.Event, events.Ref, error) {
	e, err := events.Decode(rec.Data)
	if err != nil {
		return all, ref, err
	}
	all, err = linked(all, e, id, ref)
	if len(all) > 0 {
		ref = all[len(all)-1].Prev
	}
	return all, ref, err
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
