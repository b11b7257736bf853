package work_test

import (
	"context"
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
