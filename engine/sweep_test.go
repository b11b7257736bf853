package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/store"
)

// sweptStore keeps the revisions up to which mail was swept.
type sweptStore struct {
	store.Store
	mu     sync.Mutex
	before []int64
	now    int64
	err    error
}

func (s *sweptStore) SweepMailboxes(_ context.Context, before int64) (int, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = append(s.before, before)
	if s.err != nil {
		return 0, 0, s.err
	}
	return 0, s.now, nil
}

// is sets what the next sweeps find.
func (s *sweptStore) is(now int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.err = now, err
}

// swept returns the revisions up to which mail was swept.
func (s *sweptStore) swept() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.before)
}

func TestSweep_RemovesWhatIsOlderThanAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.view.Store(new(present(1, selfID)))
		s := &sweptStore{now: 100}
		p.sweeper = s
		go p.sweepMailboxes(p.ctx)
		want := func(what string, before ...int64) {
			t.Helper()
			synctest.Wait()
			if got := s.swept(); !slices.Equal(got, before) {
				t.Errorf("%s: swept up to %v, want %v", what, got, before)
			}
		}
		time.Sleep(sweepMailboxesEvery - time.Nanosecond)
		want("before the first period has ended")
		time.Sleep(time.Nanosecond)
		want("the first period only notes", 0)
		s.is(200, nil)
		time.Sleep(sweepMailboxesEvery)
		want("after a period", 0, 100)
		s.is(200, errors.New("etcd is away"))
		time.Sleep(sweepMailboxesEvery)
		want("after another", 0, 100, 200)
		s.is(200, nil)
		time.Sleep(sweepMailboxesEvery)
		want("after one that failed", 0, 100, 200, 200)
	})
}

func TestSweep_IsMadeByTheOwnerOfShardZeroAlone(t *testing.T) {
	p := newPost(t)
	own := present(1, selfID)
	p.view.Store(&own)
	s := &sweptStore{now: 100}
	p.sweeper = s
	noted := p.sweepOnce(t.Context(), 0)
	other := present(2, selfID, farID)
	other.Owners[0] = store.Owner{Node: farID, Revision: 2}
	p.view.Store(&other)
	if noted = p.sweepOnce(t.Context(), noted); len(s.before) != 1 {
		t.Errorf("swept up to %v although another node owns shard 0", s.before)
	}
	p.view.Store(&own)
	if p.sweepOnce(t.Context(), noted); !slices.Equal(s.before, []int64{0, 0}) {
		t.Errorf("swept up to %v, want a period that only notes after each take", s.before)
	}
}
