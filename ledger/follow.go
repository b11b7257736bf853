package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"taskledger/events"
	"taskledger/ledger/internal/merged"
	"taskledger/store"
)

// Cursor says how far a projection has come: for each shard, by its number, the number of the last entry that was
// folded. nil stands for the beginning. A service stores it together with its projection, as JSON for example.
type Cursor []uint64

// EntryBatch is the events of one entry of one shard's journal: what was committed together.
type EntryBatch struct {
	Shard  int
	Entry  uint64 // its number: 1, 2, 3 ... within the shard
	Time   events.Millis
	Events []Event // at least one
	Cursor Cursor  // from which Follow continues after this batch; it belongs to the receiver
}

// Follow yields every event of the cluster after a cursor, without end, so that a service can build a projection of its
// own: the service folds the events of each batch and stores the result together with the batch's Cursor, in one
// transaction. Each event then counts exactly once, whatever is killed in between. Each event tells the behavior of its
// task and the node of its attempt: Follow remembers some ten thousand unfinished tasks for this, and reads what came
// before of those that it does not remember.
//
// The batches of one shard come in order and without gaps. Those that were committed before the call come first, in the
// order of the whole cluster, as Replay yields them; later ones come as they are committed, shard by shard.
//
// Follow ends when the consumer stops, when ctx ends, which yields no error, and after the first error. It can then be
// called again with the last cursor. The error is store.ErrTrimmed if entries after the cursor are no longer there:
// FirstCursor goes on. Lost connections do not end it. When it has ended it leaves nothing behind.
//
// The error is a *store.InvalidError if the cursor is of another number of shards, or ahead of the end of a journal: it
// is then of another cluster, or of this one before it was restored from a backup. A cursor of another cluster that is
// neither cannot be told from a right one, and events are left out: keep the cluster's id, store.Cluster.ID, beside the
// cursor, and compare it.
func (l *Ledger) Follow(ctx context.Context, from Cursor) iter.Seq2[EntryBatch, error] {
	return func(yield func(EntryBatch, error) bool) {
		err := l.follow(ctx, from, func(b EntryBatch) bool { return yield(b, nil) })
		if err != nil && ctx.Err() == nil {
			yield(EntryBatch{}, fmt.Errorf("follow: %w", err))
		}
	}
}

// follow yields the past, then the present.
func (l *Ledger) follow(ctx context.Context, from Cursor, yield func(EntryBatch) bool) error {
	r, err := l.reader()
	if err != nil {
		return err
	}
	at := make(Cursor, l.cfg.Cluster.Shards)
	if copy(at, from); from != nil && len(from) != len(at) {
		return &store.InvalidError{
			Field:   "cursor",
			Problem: fmt.Sprintf("of %d shards, the cluster has %d", len(from), len(at)),
		}
	}
	if err := l.notAhead(ctx, r, "cursor", at); err != nil {
		return err
	}
	now, err := l.cfg.Revision(ctx)
	if err != nil {
		return fmt.Errorf("read revision: %w", err)
	}
	past, begins := map[int]iter.Seq2[StoredEntry, error]{}, map[int]uint64{}
	for shard, last := range at {
		begins[shard] = last + 1
		past[shard] = while(Decoded(shard, last+1, r.Read(ctx, shard, last+1)),
			func(e StoredEntry) bool { return e.Revision <= now })
	}
	before := newRecall(r, l.cfg.Owners)
	for _, seq := range []iter.Seq2[StoredEntry, error]{merged.Of(maps.Values(past), StoredEntry.before), r.present(ctx, at)} {
		for e, err := range seq {
			if err != nil {
				return r.whence(ctx, begins, err)
			}
			at[e.Shard] = e.Number
			if len(e.Events) == 0 { // it only records what became of a batch
				continue
			}
			all := make([]Event, len(e.Events))
			for i := range e.Events {
				if all[i], err = before.tell(ctx, int(e.Shard), &e.Events[i]); err != nil {
					return err
				}
			}
			if !yield(EntryBatch{int(e.Shard), e.Number, e.Time, all, slices.Clone(at)}) {
				return nil
			}
		}
	}
	return nil
}

// FirstCursor returns a cursor from which Follow can be called where the first entries were dropped, so that nil is
// store.ErrTrimmed: behind what was dropped. A projection that begins there meets tasks in the middle of their lives.
// Entries are dropped on meanwhile: call Follow soon, and FirstCursor again if it is still too late. Where nothing was
// dropped it stands for the beginning.
func (l *Ledger) FirstCursor(ctx context.Context) (Cursor, error) {
	r, err := l.reader()
	if err != nil {
		return nil, err
	}
	at := make(Cursor, l.cfg.Cluster.Shards)
	for shard := range at {
		first, err := r.Begins(ctx, shard)
		if err != nil {
			return nil, fmt.Errorf("first cursor: shard %d: %w", shard, err)
		}
		at[shard] = first - 1
	}
	return at, nil
}

// notAhead refuses a cursor that names an entry which has not been written. A journal is trimmed from its beginning on,
// and its last entry is never trimmed; so an entry that is missing and not before the first one is to come.
func (l *Ledger) notAhead(ctx context.Context, r *Reader, field string, at Cursor) error {
	for shard, last := range at {
		if last == 0 {
			continue
		}
		_, err := l.cfg.Journal.Entry(ctx, shard, last)
		if err == nil || errors.Is(err, events.ErrDamaged) {
			continue
		}
		first := uint64(0)
		if errors.Is(err, store.ErrTrimmed) {
			first, err = r.First(ctx, shard)
		}
		switch {
		case err != nil:
			return fmt.Errorf("compare the %s with shard %d: %w", field, shard, err)
		case last >= first:
			return &store.InvalidError{
				Field: field,
				Problem: fmt.Sprintf("entry %d of shard %d is not written yet: it is of another cluster, or of this one before it was restored",
					last, shard),
			}
		}
	}
	return nil
}

// present yields the entries of all shards after the cursor, as it stands when the consumer begins, as they are
// committed, until ctx ends. One goroutine per shard reads ahead by one entry at most; the rest stays in the store
// until the consumer is ready.
func (r *Reader) present(ctx context.Context, at Cursor) iter.Seq2[StoredEntry, error] {
	type result struct {
		StoredEntry
		err error
	}
	return func(yield func(StoredEntry, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		var shards sync.WaitGroup
		defer shards.Wait()
		defer stop()
		results := make(chan result)
		for shard, last := range slices.Clone(at) {
			shards.Go(func() {
				for e, err := range Decoded(shard, last+1, r.Follow(ctx, shard, last+1)) {
					select {
					case results <- result{e, err}:
					case <-ctx.Done():
						return
					}
				}
			})
		}
		for {
			select {
			case got := <-results:
				if !yield(got.StoredEntry, got.err) || got.err != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
