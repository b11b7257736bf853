package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// pageEntries bounds one reply to 12 MiB. Pages also end at a key: etcd counts all keys of the range it is given.
const pageEntries = 16

// watchAhead and watchBytes bound the entries that a watch holds for a consumer who is behind: beyond them it ends,
// and pages are read when the consumer comes back.
const (
	watchAhead = 256
	watchBytes = 2 << 20
)

// Read is described in store.Journal.
func (s *Store) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		_, _, err := s.read(ctx, shard, max(from, 1), each(yield))
		if err != nil && !errors.Is(err, errStopped) {
			yield(store.Record{}, fmt.Errorf("read shard %d from entry %d: %w", shard, from, err))
		}
	}
}

// Backward is described in store.Journal.
func (s *Store) Backward(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for next := from; next > 0; {
			page, err := s.pageBefore(ctx, shard, next)
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				next--
			}
			if err != nil {
				yield(store.Record{}, fmt.Errorf("read shard %d backward from entry %d: %w", shard, from, err))
				return
			}
		}
	}
}

// Entry is described in store.Journal.
func (s *Store) Entry(ctx context.Context, shard int, number uint64) (store.Record, error) {
	resp, err := s.get(ctx, s.keys.entry(shard, number))
	if err == nil && len(resp.Kvs) == 0 {
		err = store.ErrTrimmed
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("read entry %d of shard %d: %w", number, shard, err)
	}
	return toRecord(resp.Kvs[0])
}

// Follow is described in store.Journal. It ends with an error only when the next entry was trimmed, when etcd refuses
// the request for good, and when the client is closed.
func (s *Store) Follow(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		next := max(from, 1)
		err := s.persist(ctx, fmt.Sprintf("follow shard %d", shard), func() (err error) {
			next, err = s.follow(ctx, shard, next, each(yield))
			return err
		})
		if err != nil {
			yield(store.Record{}, fmt.Errorf("at entry %d: %w", next, err))
		}
	}
}

func each(yield func(store.Record, error) bool) func(store.Record) error {
	return func(r store.Record) error {
		if !yield(r, nil) {
			return errStopped
		}
		return nil
	}
}

// follow reads to the end and watches from there, until something breaks or each does not keep up. It returns the
// number of the entry that each has not seen yet.
func (s *Store) follow(ctx context.Context, shard int, next uint64, each func(store.Record) error) (uint64, error) {
	next, rev, err := s.read(ctx, shard, next, each)
	if err != nil {
		return next, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &watched{records: make(chan store.Record, watchAhead)}
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { w.run(ctx, s, shard, next, rev) })
	for r := range w.records {
		if r.Number != next {
			return next, fmt.Errorf("watch skipped from entry %d to %d", next, r.Number)
		}
		w.bytes.Add(-int64(len(r.Data)))
		next++
		if err := each(r); err != nil {
			return next, err
		}
	}
	return next, w.err
}

// watched buffers the records between a watch and its consumer, and bounds them: the etcd client would keep any
// number.
type watched struct {
	records chan store.Record
	bytes   atomic.Int64
	err     error // why it has ended, once records is closed; nil = the consumer is too slow: what follows is to be read
}

// run watches until something breaks or the consumer is too far behind.
func (w *watched) run(ctx context.Context, s *Store, shard int, next uint64, rev int64) {
	defer close(w.records)
	err := s.watch(ctx, s.keys.entry(shard, next), end(s.keys.journal(shard)), rev+1, func(ev *clientv3.Event) error {
		if ev.Type != clientv3.EventTypePut {
			return nil // a trim
		}
		r, err := toRecord(ev.Kv)
		if err != nil {
			return err
		}
		if held := w.bytes.Add(int64(len(r.Data))); held > watchBytes && held > int64(len(r.Data)) {
			return errBehind
		}
		select {
		case w.records <- r:
			return nil
		default:
			return errBehind
		}
	})
	if !errors.Is(err, errBehind) {
		w.err = err
	}
}

var errBehind = errors.New("the consumer is behind")

// read calls each with the entries from next on that were written up to the revision of its first page, which it
// returns with the number of the entry that each has not seen yet.
func (s *Store) read(
	ctx context.Context,
	shard int,
	next uint64,
	each func(store.Record) error,
) (uint64, int64, error) {
	var until int64
	for {
		page, rev, err := s.page(ctx, shard, next)
		if err != nil {
			return next, until, err
		}
		if until == 0 {
			until = rev
		}
		for _, r := range page {
			if r.Revision > until {
				return next, until, nil
			}
			next++
			if err := each(r); err != nil {
				return next, until, err
			}
		}
		if len(page) < pageEntries {
			return next, until, nil
		}
	}
}

// page reads the entries from from on, at most pageEntries of them, at one revision, which it returns.
func (s *Store) page(ctx context.Context, shard int, from uint64) ([]store.Record, int64, error) {
	resp, err := s.get(ctx, s.keys.entry(shard, from), clientv3.WithRange(s.keys.entry(shard, from+pageEntries)))
	if err != nil {
		return nil, 0, err
	}
	rev := resp.Header.Revision
	if len(resp.Kvs) == 0 {
		return nil, rev, s.checkEnd(ctx, shard, from, rev)
	}
	page := make([]store.Record, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		if page[i], err = toRecord(kv); err != nil {
			return nil, 0, err
		}
		if want := from + uint64(i); page[i].Number != want {
			return nil, 0, fmt.Errorf("%w: entry %d", store.ErrTrimmed, want)
		}
	}
	return page, rev, nil
}

// pageBefore reads the entries from from down, newest first and at most pageEntries of them. With an error it returns
// the entries that it could read before.
func (s *Store) pageBefore(ctx context.Context, shard int, from uint64) ([]store.Record, error) {
	first := from - min(from, pageEntries) + 1
	resp, err := s.get(ctx, s.keys.entry(shard, first), clientv3.WithRange(s.keys.entry(shard, from+1)))
	if err != nil {
		return nil, err
	}
	var page []store.Record
	for _, kv := range slices.Backward(resp.Kvs) {
		r, err := toRecord(kv)
		if err != nil {
			return page, err
		}
		if r.Number != from-uint64(len(page)) {
			break
		}
		page = append(page, r)
	}
	if missing := from - uint64(len(page)); missing >= first {
		return page, fmt.Errorf("%w: entry %d", store.ErrTrimmed, missing)
	}
	return page, nil
}

// checkEnd tells the end of the journal from a trimmed part of it, when nothing was found from from on at revision
// rev. The last entry is never trimmed, so a later one that existed at that revision proves the trim.
func (s *Store) checkEnd(ctx context.Context, shard int, from uint64, rev int64) error {
	resp, err := s.get(ctx, s.keys.entry(shard, from), clientv3.WithRange(end(s.keys.journal(shard))),
		clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	if len(resp.Kvs) == 0 {
		return nil
	}
	first, err := toRecord(resp.Kvs[0])
	if err != nil {
		return err
	}
	if first.Revision > rev {
		return nil // appended since
	}
	return fmt.Errorf("%w: entry %d, the first is %d", store.ErrTrimmed, from, first.Number)
}

func toRecord(kv *mvccpb.KeyValue) (store.Record, error) {
	n, err := number(kv.Key)
	if err != nil {
		return store.Record{}, err
	}
	revision, data := carried(kv.Value)
	return store.Record{Head: store.Head{Number: n, Revision: cmp.Or(revision, kv.ModRevision)}, Data: data}, nil
}
