package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/store"
	"taskledger/task"
)

// refusing is a store that does not let journals be followed while it is told why.
type refusing struct {
	store.Store
	why atomic.Pointer[error] // nil: it does
}

// Follow implements store.Store.
func (s *refusing) Follow(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	why := s.why.Load()
	if why == nil {
		return s.Store.Follow(ctx, shard, from)
	}
	return func(yield func(store.Record, error) bool) { yield(store.Record{}, *why) }
}

// Without NATS the outcome of a task is known at once to whoever has waited for long, although the journal could not be
// followed for a while.
func TestFuture_FollowsTheJournalAgainAfterARefusal(t *testing.T) {
	t.Parallel()
	for _, why := range []error{errors.New("permission denied"), fmt.Errorf("at entry 1: %w", store.ErrTrimmed)} {
		t.Run(why.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, false)
				job := newJob(task.Policy{})
				c.start("a", 0, nil, job).ready(t)
				store := &refusing{}
				b := c.start("b", 0, func(cfg *cfg) {
					store.Store, cfg.Store = cfg.Store, store
					noShards(cfg)
				})
				b.ready(t)
				store.why.Store(&why)
				f := job.submit(t, b, "x")
				f.Done() // begins to wait
				r := job.next(t)
				time.Sleep(80 * time.Second)
				store.why.Store(nil)
				time.Sleep(5 * time.Second)
				began := time.Now()
				r.succeed("1")
				want(t, f, "1")
				if took := time.Since(began); took > time.Second {
					t.Errorf("the outcome was known %s after the function had ended", took)
				}
			})
		})
	}
}

// trimming is a store whose journal has been trimmed up to the entry that was the first to be asked for.
type trimming struct {
	store.Store
	first atomic.Uint64 // 0: not asked for yet
}

// Follow implements store.Store.
func (s *trimming) Follow(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	s.first.CompareAndSwap(0, from)
	if from > s.first.Load() {
		return s.Store.Follow(ctx, shard, from)
	}
	return func(yield func(store.Record, error) bool) {
		yield(store.Record{}, fmt.Errorf("at entry %d: %w", from, store.ErrTrimmed))
	}
}

// When the journal was trimmed past the place that a future follows, the future asks the owner and follows from
// there on.
func TestFuture_FollowsTheJournalBeyondWhatWasTrimmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, false)
		job := newJob(task.Policy{})
		c.start("a", 0, nil, job).ready(t)
		b := c.start("b", 0, func(cfg *cfg) {
			cfg.Store = &trimming{Store: cfg.Store}
			noShards(cfg)
		})
		b.ready(t)
		f := job.submit(t, b, "x/1")
		f.Done() // begins to wait
		r := job.next(t)
		time.Sleep(time.Second)
		other := job.submit(t, c.nodes[0].Node, "x/2")
		job.next(t).succeed("2")
		want(t, other, "2")
		time.Sleep(80 * time.Second)
		began := time.Now()
		r.succeed("1")
		want(t, f, "1")
		if took := time.Since(began); took > time.Second {
			t.Errorf("the outcome was known %s after the function had ended", took)
		}
	})
}
