package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/ledger/internal/earlier"
	"taskledger/ledger/internal/merged"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// ReplayOptions select events; zero fields select all. What selects by task, behavior or status leaves out the events
// of records that are no tasks.
type ReplayOptions struct {
	From     time.Time // events of this time and later, by the owners' clocks; of shards that After names all
	To       time.Time // events before this time
	Task     events.TaskID
	Behavior string
	Status   task.Status     // of the task after the event; for Deleted, before it
	Records  []events.Record // of these alone
	Kinds    []events.Kind   // of these alone
	// After has positions of one shard each: of that shard the events after it alone. A position that the journal has not
	// reached is a *store.InvalidError.
	After []events.Position
}

// folds reports whether the selection depends on the state of tasks.
func (o *ReplayOptions) folds() bool { return o.Behavior != "" || o.Status != 0 }

// one returns the id whose shard has all events that are selected; "" = they may be in any.
func (o *ReplayOptions) one() events.TaskID {
	others := func(k events.Kind) bool { return k.Record() != events.OfSettings }
	if o.Task == "" && len(o.Kinds) > 0 && !slices.ContainsFunc(o.Kinds, others) {
		return events.Settings
	}
	return o.Task
}

// Replay yields the events of the whole cluster in the order in which they were committed: by the etcd revision of
// their entries, then by index. It ends with the events that were committed when it began; Follow continues. It holds
// one page of entries per shard in memory. It yields store.ErrTrimmed if entries of the time asked for are no longer
// there, and where the first ones were dropped the error tells from when on all are.
//
// A selection by Behavior or Status needs the state that the events change. It reads from the beginning, whatever From
// says, and holds as much in memory as the owners of the shards do. If the beginning was dropped, it reads from the
// older snapshot; From must then be later than that snapshot, otherwise it yields store.ErrTrimmed.
func (l *Ledger) Replay(ctx context.Context, o ReplayOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := l.replay(ctx, o, yield); err != nil {
			yield(Event{}, fmt.Errorf("replay: %w", err))
		}
	}
}

func (l *Ledger) replay(ctx context.Context, o ReplayOptions, yield func(Event, error) bool) error {
	r, err := l.reader()
	if err != nil {
		return err
	}
	now, err := l.cfg.Revision(ctx)
	if err != nil {
		return fmt.Errorf("read revision: %w", err)
	}
	from, to := events.MillisOf(o.From), events.MillisOf(o.To)
	after, err := l.after(ctx, r, o.After)
	if err != nil {
		return err
	}
	shards := map[int]iter.Seq2[StoredEntry, error]{}
	states := map[int]*projection.Shard{}
	begins := map[int]uint64{}
	for shard := range l.cfg.Cluster.Shards {
		if of := o.one(); of != "" && of.Shard(l.cfg.Cluster.Shards) != shard {
			continue
		}
		state, begin, err := o.begin(ctx, r, shard, after[shard])
		if err != nil {
			return fmt.Errorf("shard %d: %w", shard, err)
		}
		states[shard], begins[shard] = state, begin
		shards[shard] = while(Decoded(shard, begin, r.Read(ctx, shard, begin)), func(e StoredEntry) bool {
			return e.Revision <= now && (to == 0 || e.Time < to)
		})
	}
	before := newRecall(r, l.cfg.Owners)
	before.one = o.Task != ""
	for e, err := range merged.Of(maps.Values(shards), StoredEntry.before) {
		if err != nil {
			return r.whence(ctx, begins, err)
		}
		for i := range e.Events {
			ev := &e.Events[i]
			was, matches, err := o.matches(ev, states[int(e.Shard)])
			if err != nil {
				return err
			}
			if since := after[int(e.Shard)]; !matches || since == 0 && ev.At < from || ev.Position.Ref <= since {
				continue
			}
			told := tell(&was, ev)
			if states[int(e.Shard)] == nil {
				if told, err = before.tell(ctx, int(e.Shard), ev); err != nil {
					return err
				}
			}
			if !yield(told, nil) {
				return nil
			}
		}
		if state := states[int(e.Shard)]; state != nil {
			state.Seal(e.Entry)
		}
	}
	return nil
}

// ParsePositions reads positions with commas between them, none from nothing. Its error is a *store.InvalidError of the
// field.
func ParsePositions(field, text string) (all []events.Position, err error) {
	if text == "" {
		return nil, nil
	}
	for _, one := range strings.Split(text, ",") {
		p, err := events.ParsePosition(one)
		if err != nil {
			return nil, &store.InvalidError{Field: field, Problem: err.Error()}
		}
		if all = append(all, p); len(all) > store.MaxShards {
			return nil, &store.InvalidError{
				Field:   field,
				Problem: fmt.Sprintf("want %d positions at most", store.MaxShards),
			}
		}
	}
	return all, nil
}

// after returns what ReplayOptions.After names, by shard.
func (l *Ledger) after(ctx context.Context, r *Reader, positions []events.Position) (map[int]events.Ref, error) {
	after, at := map[int]events.Ref{}, make(Cursor, l.cfg.Cluster.Shards)
	for _, p := range positions {
		shard := int(p.Shard)
		switch {
		case shard >= len(at):
			return nil, &store.InvalidError{
				Field:   "after",
				Problem: fmt.Sprintf("position %s: the cluster has %d shards, from 0 on", p, len(at)),
			}
		case after[shard] != 0:
			return nil, &store.InvalidError{
				Field:   "after",
				Problem: fmt.Sprintf("position %s: want one of each shard, shard %d has another", p, shard),
			}
		case p.Ref.Entry() == 0:
			return nil, &store.InvalidError{
				Field:   "after",
				Problem: fmt.Sprintf("position %s: entries count from 1", p),
			}
		}
		after[shard], at[shard] = p.Ref, p.Ref.Entry()
	}
	return after, l.notAhead(ctx, r, "after", at)
}

// begin returns the state, if it is needed, and the entry to begin with; after = 0 is the beginning.
func (o *ReplayOptions) begin(
	ctx context.Context,
	r *Reader,
	shard int,
	after events.Ref,
) (*projection.Shard, uint64, error) {
	if o.folds() {
		state, err := r.beginning(ctx, shard)
		if err == nil && state.Number > 0 && events.MillisOf(o.From) <= state.Time {
			err = fmt.Errorf("%w: of events up to %s the beginning was dropped, and their behavior and status cannot be known: choose a later time to begin with",
				store.ErrTrimmed, state.Time.Time().UTC().Format(time.RFC3339))
		}
		if err != nil {
			return nil, 0, err
		}
		return state, state.Number + 1, nil
	}
	if after != 0 {
		return nil, after.Entry(), nil
	}
	begin, err := r.since(ctx, shard, events.MillisOf(o.From))
	return nil, begin, err
}

// whence tells of an entry that is no longer there from when on all are, if what is missing are the first entries of
// shards. It gets the entries with which shards begin; any other error it returns as it is.
func (r *Reader) whence(ctx context.Context, begins map[int]uint64, lacks error) error {
	if !errors.Is(lacks, store.ErrTrimmed) || errors.Is(lacks, events.ErrDamaged) {
		return lacks
	}
	var since events.Millis
	for shard, begin := range begins {
		first, err := r.Begins(ctx, shard)
		if err != nil {
			return lacks
		}
		if begin >= first {
			continue
		}
		rec, err := r.Entry(ctx, shard, first)
		if err != nil {
			return lacks
		}
		e, err := events.Decode(rec.Data)
		if err != nil {
			return lacks
		}
		since = max(since, e.Time+1) // entries of the same time may have been dropped
	}
	if since == 0 {
		return lacks
	}
	at, _ := since.MarshalText() // it never fails
	return fmt.Errorf("%w: the first entries were dropped; begin at %s or later", store.ErrTrimmed, at)
}

// matches reports whether an event is selected, its time aside. It folds the event into the state, if there is one,
// which tells what was known before it.
func (o *ReplayOptions) matches(ev *events.Event, state *projection.Shard) (was earlier.Known, is bool, err error) {
	was = earlier.Make("", "")
	var t *projection.Task
	if state != nil {
		t = state.Task(ev.Task)
		if t != nil {
			was = earlier.Make(t.Kind.Behavior, t.Node)
		}
		after, err := state.Apply(t, ev)
		if err != nil {
			return was, false, err
		}
		if after != nil {
			t = after
		}
	}
	switch {
	case o.Task != "" && ev.Task != o.Task, len(o.Records) > 0 && !slices.Contains(o.Records, ev.Kind().Record()),
		len(o.Kinds) > 0 && !slices.Contains(o.Kinds, ev.Kind()):
		return was, false, nil
	case t == nil: // the event has no task, or no state is needed
		return was, !o.folds(), nil
	}
	return was, (o.Behavior == "" || t.Kind.Behavior == o.Behavior) && (o.Status == 0 || t.Status == o.Status), nil
}

// since returns the number of the first entry that was written at a time or later. Times never decrease within a shard.
func (r *Reader) since(ctx context.Context, shard int, at events.Millis) (uint64, error) {
	if at == 0 {
		return 1, nil
	}
	earlier := func(number uint64) (bool, error) {
		rec, err := r.Entry(ctx, shard, number)
		if errors.Is(err, store.ErrTrimmed) {
			return false, nil // not written yet
		}
		if err != nil {
			return false, err
		}
		e, err := events.Decode(rec.Data)
		return err == nil && e.Time < at, err
	}
	low := uint64(0) // entries up to it are earlier, or dropped
	if _, err := r.Entry(ctx, shard, 1); errors.Is(err, store.ErrTrimmed) {
		first, err := r.Begins(ctx, shard)
		if err != nil {
			return 0, err
		}
		if is, err := earlier(first); err != nil || !is {
			return 1, err // Read says what is missing
		}
		low = first
	}
	step := uint64(1)
	for ; ; step *= 2 {
		if is, err := earlier(low + step); err != nil {
			return 0, err
		} else if !is {
			break
		}
		low += step
	}
	for high := low + step; low+1 < high; {
		middle := low + (high-low)/2
		is, err := earlier(middle)
		if err != nil {
			return 0, err
		}
		if is {
			low = middle
		} else {
			high = middle
		}
	}
	return low + 1, nil
}

// StoredEntry holds an entry as it was committed, with the revision of its write.
type StoredEntry struct {
	*events.Entry
	Revision int64
	Size     int // in the journal, in bytes
}

// before is the order of the cluster. One request may have written entries of several shards, at one revision.
func (e StoredEntry) before(o StoredEntry) bool {
	return cmp.Or(cmp.Compare(e.Revision, o.Revision), cmp.Compare(e.Shard, o.Shard)) < 0
}

// Decoded decodes the entries of a shard, which must follow each other from number next on; otherwise it yields
// events.ErrDamaged. It ends with the first error.
func Decoded(shard int, next uint64, seq iter.Seq2[store.Record, error]) iter.Seq2[StoredEntry, error] {
	return func(yield func(StoredEntry, error) bool) {
		for rec, err := range seq {
			var e *events.Entry
			if err == nil {
				e, err = events.Decode(rec.Data)
			}
			if err == nil && (e.Number != next || int(e.Shard) != shard) {
				err = fmt.Errorf("%w: entry %d of shard %d is stored as entry %d", events.ErrDamaged, e.Number, e.Shard, next)
			}
			if !yield(StoredEntry{e, rec.Revision, len(rec.Data)}, err) || err != nil {
				return
			}
			next++
		}
	}
}

// while ends a sequence before the first entry for which the condition is false.
func while(seq iter.Seq2[StoredEntry, error], holds func(StoredEntry) bool) iter.Seq2[StoredEntry, error] {
	return func(yield func(StoredEntry, error) bool) {
		for e, err := range seq {
			if err == nil && !holds(e) || !yield(e, err) {
				return
			}
		}
	}
}
