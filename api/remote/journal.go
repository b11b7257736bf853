package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"taskledger/api"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
)

// newLedger returns the id of the cluster, and a ledger that reads over the API. Where the token may not read journals,
// or the API has none, each of its calls says so.
func newLedger(ctx context.Context, l *link) (cluster string, all *ledger.Ledger, err error) {
	j := journals{l}
	first, err := j.page(ctx, 0, noEntries())
	cfg := ledger.Config{
		Cluster: store.Cluster{ID: first.Cluster, Shards: first.Shards},
		Journal: j,
		Archive: j,
		Owners:  owners{journals: j, shards: first.Shards},
		Revision: func(ctx context.Context) (int64, error) {
			now, err := j.page(ctx, 0, noEntries())
			return now.Revision, err
		},
	}
	switch {
	case err == nil:
		return first.Cluster, ledger.New(cfg), nil
	case errors.Is(err, store.ErrUnavailable):
		return "", nil, err
	}
	cfg.Cluster.Shards = 1 // so that the journal is asked, which says why it cannot be read
	cfg.Journal, cfg.Archive, cfg.Owners = closedJournal{err}, nil, nil
	return "", ledger.New(cfg), nil
}

// journals implements ledger.Journal by pages of entries. The API reads the archive along, so that a journal begins
// with the first entry that is in either.
type journals struct{ *link }

// backwards is the number of entries that are read at once to be yielded newest first.
const backwards = 64

// noEntries returns the parameters of a page without entries.
func noEntries() params {
	q := newParams()
	q.text("limit", "0")
	return q
}

func (j journals) page(ctx context.Context, shard int, q params) (page api.JournalPage, err error) {
	q.text("shard", strconv.Itoa(shard))
	_, err = j.ask(ctx, request{
		does:   "read the journal of shard " + strconv.Itoa(shard),
		method: http.MethodGet,
		path:   "/v1/journal",
		query:  q.Values,
		most:   pageBytes,
	}, &page)
	return page, err
}

// ReadArchive implements store.ArchiveReader.
func (j journals) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	q := newParams()
	q.flag("archive", true)
	return j.all(ctx, shard, from, q)
}

// FindArchived implements store.ArchiveReader: what the archive alone has is read as a part of the journal.
func (j journals) FindArchived(context.Context, int, events.TaskID, uint64) iter.Seq2[store.Record, error] {
	return failing(store.ErrNoArchive)
}

// entries reads up to limit entries from number from on, and reports whether there are more; 0 = as many as fit.
func (j journals) entries(
	ctx context.Context, shard int, from uint64, limit int, q params,
) (all []store.Record, more bool, err error) {
	q.number("from", int64(from))
	q.number("limit", int64(limit))
	page, err := j.page(ctx, shard, q)
	if err == nil && page.NoArchive {
		err = store.ErrNoArchive
	}
	if err != nil {
		return nil, false, err
	}
	for i, e := range page.Entries {
		if e.Number != from+uint64(i) {
			return nil, false, fmt.Errorf("read the journal of shard %d: %w: entry %d was told for entry %d",
				shard, events.ErrDamaged, e.Number, from+uint64(i))
		}
		all = append(all, store.Record{
			Head: store.Head{Number: e.Number, Revision: e.Revision},
			Data: e.Data,
		})
	}
	return all, page.More && len(all) > 0, nil
}

// First implements ledger.Journal.
func (j journals) First(ctx context.Context, shard int) (uint64, error) {
	page, err := j.page(ctx, shard, noEntries())
	return page.Begins, err
}

// Read implements ledger.Journal.
func (j journals) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return j.all(ctx, shard, from, newParams())
}

// all yields the entries from number from on, which further parameters select.
func (j journals) all(ctx context.Context, shard int, from uint64, q params) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for next, more := max(from, 1), true; more; {
			var all []store.Record
			var err error
			if all, more, err = j.entries(ctx, shard, next, 0, params{maps.Clone(q.Values)}); err != nil {
				yield(store.Record{}, err)
				return
			}
			for _, rec := range all {
				if !yield(rec, nil) {
					return
				}
				next = rec.Number + 1
			}
		}
	}
}

// Backward implements ledger.Journal.
func (j journals) Backward(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		first, err := j.First(ctx, shard)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for last, size := from, 1; last > 0; size = min(2*size, backwards) {
			if last < first {
				yield(store.Record{}, gone(shard, last))
				return
			}
			begin := max(first, last-min(last-1, uint64(size-1)))
			var held []store.Record
			for next := begin; next <= last; {
				all, more, err := j.entries(ctx, shard, next, int(last-next+1), newParams())
				if err == nil && len(all) == 0 || err == nil && !more && all[len(all)-1].Number < last {
					err = gone(shard, last)
				}
				if err != nil {
					yield(store.Record{}, err)
					return
				}
				held = append(held, all...)
				next = all[len(all)-1].Number + 1
			}
			for _, rec := range slices.Backward(held) {
				if !yield(rec, nil) {
					return
				}
			}
			last = begin - 1
		}
	}
}

func gone(shard int, number uint64) error {
	return fmt.Errorf("entry %d of shard %d: %w", number, shard, store.ErrTrimmed)
}

// Entry implements ledger.Journal.
func (j journals) Entry(ctx context.Context, shard int, number uint64) (store.Record, error) {
	all, _, err := j.entries(ctx, shard, number, 1, newParams())
	if err == nil && len(all) == 0 {
		err = gone(shard, number)
	}
	if err != nil {
		return store.Record{}, err
	}
	return all[0], nil
}

// Follow implements ledger.Journal: it has no route.
func (j journals) Follow(context.Context, int, uint64) iter.Seq2[store.Record, error] {
	return failing(
		fmt.Errorf("follow the journal: %w: read /v1/replay after the last position again and again", ErrNoRoute),
	)
}

func failing(err error) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) { yield(store.Record{}, err) }
}

// closedJournal is a ledger.Journal that cannot be read.
type closedJournal struct{ why error }

func (c closedJournal) First(context.Context, int) (uint64, error) { return 0, c.why }

func (c closedJournal) Read(context.Context, int, uint64) iter.Seq2[store.Record, error] {
	return failing(c.why)
}

func (c closedJournal) Backward(context.Context, int, uint64) iter.Seq2[store.Record, error] {
	return failing(c.why)
}

func (c closedJournal) Entry(context.Context, int, uint64) (store.Record, error) {
	return store.Record{}, c.why
}

func (c closedJournal) Follow(context.Context, int, uint64) iter.Seq2[store.Record, error] {
	return failing(c.why)
}

// owners implements ledger.Owners.
type owners struct {
	journals
	shards int // the cluster has so many
}

// Task implements ledger.Owners: it tells what a ledger needs to find the events of the task.
func (o owners) Task(ctx context.Context, id events.TaskID) (t projection.Task, err error) {
	q := noEntries()
	q.text("task", string(id))
	var page api.JournalPage
	_, err = o.ask(ctx, request{
		does:   "find task " + string(id),
		method: http.MethodGet,
		path:   "/v1/journal",
		query:  q.Values,
	}, &page)
	if err == nil && page.Task == nil {
		err = fmt.Errorf("find task %s: %w", id, store.ErrUnavailable)
	}
	if err != nil {
		return t, err
	}
	t = projection.Task{
		ID:        id,
		Kind:      &projection.Kind{Behavior: page.Task.Behavior},
		Created:   page.Task.Created,
		Last:      page.Task.Last,
		CreatedAt: page.Task.CreatedAt,
	}
	t.Started = page.Task.Started
	return t, nil
}

// Present implements ledger.Owners: the API is one of a node, which may own no shard.
func (o owners) Present(ctx context.Context) (bool, error) {
	all, err := observer{o.link}.Nodes(ctx)
	return slices.ContainsFunc(all, func(n store.NodeInfo) bool { return n.Owner }), err
}

// Heads implements ledger.Owners.
func (o owners) Heads(ctx context.Context) ([]ledger.Head, error) {
	told, err := observer{o.link}.Shards(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]ledger.Head, o.shards)
	for shard := range all {
		all[shard] = ledger.Head{Shard: shard, Problem: "the API does not tell of it"}
	}
	for _, s := range told {
		if s.Shard >= 0 && s.Shard < len(all) {
			all[s.Shard] = ledger.Head{
				Shard:   s.Shard,
				Entry:   s.Entries,
				Hash:    s.Hash,
				Drops:   s.Drops,
				Problem: s.Problem,
			}
		}
	}
	return all, nil
}

// Digest implements ledger.Owners.
func (o owners) Digest(ctx context.Context, shard int) ledger.Head {
	q := noEntries()
	q.flag("head", true)
	page, err := o.page(ctx, shard, q)
	switch {
	case err != nil:
		return ledger.Head{Shard: shard, Problem: err.Error()}
	case page.Head == nil:
		return ledger.Head{Shard: shard, Problem: "the API does not tell of it"}
	}
	return ledger.Head{
		Shard:   shard,
		Entry:   page.Head.Entry,
		Hash:    page.Head.Hash,
		Digest:  page.Head.Digest,
		Drops:   page.Head.Drops,
		Problem: cmp.Or(page.Head.Problem, ""),
	}
}
