package work_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/work/feed"
)

// measured is a source that tells how many of n messages it has not acknowledged, until it is closed.
type measured struct {
	feed.Source
	of     *queue
	n      int
	closed bool
}

func (m *measured) Pending(context.Context) (int64, time.Time, error) {
	if m.closed {
		return 0, time.Time{}, feed.ErrClosed
	}
	return int64(m.n - len(m.of.Acknowledged())), time.Now(), nil
}

func (m *measured) Close() error {
	m.closed = true
	return m.Source.Close()
}

func TestAsync_TheLagIsToldOnceABatchHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, r := newQueue(), newStreamRecord()
		for range 500 {
			q.publish("a")
		}
		q.source = &measured{
			Source: q.Open(),
			of:     q,
			n:      500,
		}
		s := q.stream(3)
		s.Batch = 10
		if err := attemptStreamOnce(t.Context(), r, s); err != nil {
			t.Fatal(err)
		}
		if last := r.moves[len(r.moves)-1]; last.Open != 490 {
			t.Errorf("%d messages are acknowledged, and the last move tells that %d wait", len(q.Acknowledged()), last.Open)
		}
	})
}

// tardy is a source that tells of an acknowledgement a moment after it has taken it, as a cluster of servers does.
type tardy struct {
	feed.Source
	of *queue
	n  int

	mu      sync.Mutex
	pending int64
	changed time.Time
}

func (s *tardy) Ack(ctx context.Context, m feed.Message) error {
	err := s.Source.Ack(ctx, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending, s.changed = int64(s.n-len(s.of.Acknowledged())), time.Now()
	return err
}

func (s *tardy) Pending(context.Context) (int64, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.changed) < 3*time.Second {
		return s.pending + 1, time.Time{}, nil
	}
	return s.pending, time.Time{}, nil
}

func TestAsync_TheLagIsToldToBeOverWhenItsSourceKnowsThatLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, r := newQueue(), newStreamRecord()
		q.publish("a")
		q.source = &tardy{
			Source:  q.Open(),
			of:      q,
			n:       1,
			pending: 1,
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- attemptStreamOnce(ctx, r, q.stream(3)) }()
		time.Sleep(time.Hour)
		r.mu.Lock()
		moves := len(r.moves)
		last := r.moves[moves-1]
		r.mu.Unlock()
		if last.Open != 0 {
			t.Errorf("an hour after the last message %d are told to wait", last.Open)
		}
		if moves > 3 {
			t.Errorf("%d moves tell of one message", moves)
		}
		stop()
		<-ended
	})
}

// One change goes on for an hour while others come, a few each minute.
func TestLiveSync_TheLagIsToldAgainWhileAChangeBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := objects(900), newStreamRecord()
		src.process = func(_ context.Context, place int) error {
			if place == 1 {
				time.Sleep(time.Hour)
			}
			return nil
		}
		src.fetch = func(context.Context, int) error {
			time.Sleep(2 * time.Second)
			return nil
		}
		began := time.Now()
		runStream(t, r, src.stream(3))
		told := map[int64]bool{}
		for i, m := range r.moves {
			if r.movedAt[i].Sub(began) < time.Hour {
				told[m.Open] = true
			}
		}
		if len(told) < 2 {
			t.Errorf("in an hour it is told that %v changes are open", told)
		}
		for i := range r.movedAt[1:] {
			if r.movedAt[i+1].Sub(began) < time.Hour && r.movedAt[i+1].Sub(r.movedAt[i]) < 10*time.Second {
				t.Errorf("moves %d and %d tell the lag alone, %s apart", i, i+1, r.movedAt[i+1].Sub(r.movedAt[i]))
			}
		}
	})
}
