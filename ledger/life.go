package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"taskledger/events"
	"taskledger/ledger/pagecursor"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// life is one of a task, from its creation to its deletion, or as far as it has come.
type life struct {
	Owners
	reader *Reader
	shard  int
	id     events.TaskID
	known  []events.Ref    // some of its events, in order; the last one is the last of all
	now    projection.Task // the task as its owner has it, perhaps in a later life, or as far as a search found it
	untold error           // why neither has told that

	milestones *Milestones // nil = none are kept
	marks      *marked     // those of this life, while a state is folded
}

// life finds the life that a task was in, or had last, at a time; 0 = now. It asks the owner, and searches if the owner
// does not answer or does not know the life: the search goes through the whole journal, and so meets where the life
// begins.
func (l *Ledger) life(ctx context.Context, id events.TaskID, until events.Millis) (*life, error) {
	f, err := l.ask(ctx, id)
	if err != nil || f.known != nil && (until == 0 || f.now.CreatedAt <= until) {
		return f, err
	}
	t, err := f.reader.last(ctx, f.shard, id, until)
	if f.now, f.untold = t, nil; t.Created == 0 {
		f.untold = task.ErrNotFound
	}
	f.known = places(t)
	return f, err
}

// turn finds the life that the cursor of a page names, as far as its owner or the cursor tells.
func (l *Ledger) turn(ctx context.Context, at pagecursor.Cursor) (*life, error) {
	f, err := l.ask(ctx, at.Task)
	if err != nil {
		return nil, err
	}
	if f.known == nil || at.Ref < f.now.Created || at.Ref > f.now.Last {
		f.known = []events.Ref{at.Last}
	}
	ev, err := f.reader.Event(ctx, f.shard, at.Ref)
	if err == nil && (ev.Task != at.Task || ev.Seq != at.Seq) {
		err = &store.InvalidError{
			Field:   "cursor",
			Problem: "it names no event of the task: the cluster may have been restored since",
		}
	}
	return f, err
}

// ask returns the life that the owner of a task knows. It has no known events if the owner does not answer, or does not
// know the task.
func (l *Ledger) ask(ctx context.Context, id events.TaskID) (*life, error) {
	if err := id.Validate(); err != nil {
		return nil, &store.InvalidError{Field: "id", Problem: err.Error()}
	}
	r, err := l.reader()
	if err != nil {
		return nil, err
	}
	f := &life{
		Owners:     l.cfg.Owners,
		reader:     r,
		shard:      id.Shard(l.cfg.Cluster.Shards),
		id:         id,
		milestones: l.cfg.Milestones,
	}
	ask, cancel := context.WithTimeout(ctx, askOwnersFor)
	defer cancel()
	f.now, f.untold = l.cfg.Owners.Task(ask, id)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, context.Cause(ctx))
	case f.untold == nil:
		f.known = places(f.now)
	}
	return f, nil
}

// places returns events of the life of a task that are known, in order: the first, where that is known, and the last.
func places(t projection.Task) []events.Ref {
	if t.Created == 0 {
		return []events.Ref{t.Last}
	}
	return slices.DeleteFunc([]events.Ref{t.Created, t.Started, t.Last}, func(ref events.Ref) bool { return ref == 0 })
}

// Task implements Owners: the owner is not asked again.
func (f *life) Task(context.Context, events.TaskID) (projection.Task, error) { return f.now, f.untold }

// oldest yields the events of the life after one of them, oldest first. wanted and whole are described at Reader.forth.
func (f *life) oldest(ctx context.Context, at after, wanted uint64, whole bool) iter.Seq2[*events.Event, error] {
	return f.reader.forth(ctx, f.shard, f.id, at, f.known, wanted, whole)
}

// last is the last event of the life.
func (f *life) last() events.Ref { return f.known[len(f.known)-1] }

// first finds the first event of the life.
func (f *life) first(ctx context.Context) (first events.Ref, err error) {
	if len(f.known) > 1 {
		return f.known[0], nil
	}
	for ev, err := range f.reader.back(ctx, f.shard, f.id, f.last()) {
		if err != nil {
			return 0, err
		}
		first = ev.Position.Ref
	}
	return first, nil
}

// last finds the task up to a time, 0 = now, as far as it tells where its events are: in the store, then in the
// archive, newest first. What begins in the archive is told by its last event alone. It wraps ErrNotFound, or
// ErrTrimmed where the first entries are not there and may have held the task.
func (r *Reader) last(
	ctx context.Context,
	shard int,
	id events.TaskID,
	until events.Millis,
) (t projection.Task, err error) {
	first, err := r.First(ctx, shard)
	if err != nil {
		return t, err
	}
	for rec, err := range r.Read(ctx, shard, first) {
		if err == nil {
			err = lastIn(rec, id, until, &t)
		}
		if err != nil {
			return t, err
		}
	}
	if t.Last != 0 {
		return t, nil
	}
	if first == 1 {
		return t, task.ErrNotFound
	}
	if r.archive == nil {
		return t, unreached(id, first)
	}
	for rec, err := range r.archive.FindArchived(ctx, shard, id, first-1) {
		switch {
		case errors.Is(err, store.ErrNoArchive) && !r.archived:
			return t, unreached(id, first)
		case err != nil:
			return t, r.unarchived(ctx, shard, first-1, err)
		}
		if err := lastIn(rec, id, until, &t); err != nil || t.Last != 0 {
			return t, err
		}
	}
	if first, err = r.Begins(ctx, shard); err != nil {
		return t, err
	}
	if first > 1 {
		return t, unreached(id, first)
	}
	return t, task.ErrNotFound
}

// unreached says that nothing is known of a task, where history begins late.
func unreached(id events.TaskID, first uint64) error {
	return fmt.Errorf("%w: nothing is known of task %s from entry %d on, and whether it was there before is not: the entries before are gone",
		store.ErrTrimmed, id, first)
}

// lastIn takes in the events of the task in an entry, up to a time.
func lastIn(rec store.Record, id events.TaskID, until events.Millis, t *projection.Task) error {
	all, err := eventsIn(rec, id)
	for _, ev := range all {
		if until != 0 && ev.At > until {
			break
		}
		switch b := ev.Body.(type) {
		case *events.Created:
			*t = projection.Task{ID: id, Created: ev.Position.Ref, Kind: &projection.Kind{Behavior: b.Behavior}}
		case *events.Started:
			t.Started = ev.Position.Ref
		}
		t.Last = ev.Position.Ref
	}
	return err
}

// eventsIn returns the events of the task that an entry holds.
func eventsIn(rec store.Record, id events.TaskID) (all []*events.Event, err error) {
	if !bytes.Contains(rec.Data, []byte(id)) {
		return nil, nil
	}
	e, err := events.Decode(rec.Data)
	if err != nil {
		return nil, err
	}
	for i := range e.Events {
		if ev := e.Events[i]; ev.Task == id { // a copy: the entry may be large
			all = append(all, &ev)
		}
	}
	return all, nil
}
