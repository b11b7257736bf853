package work_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/work"
	"taskledger/work/feed/memfeed"
	"taskledger/work/workledger"
)

// overdue is the record for an attempt that is recorded as over while its function still runs.
type overdue struct {
	*streamAttempt
	over atomic.Bool
}

func (a *overdue) Next(ctx context.Context, r work.Report) (work.Answer, error) {
	if a.over.Load() {
		return work.Answer{}, workledger.ErrOver
	}
	return a.streamAttempt.Next(ctx, r)
}

func (a *overdue) Move(ctx context.Context, m workledger.Move) (workledger.Moved, error) {
	if a.over.Load() {
		return workledger.Moved{}, workledger.ErrOver
	}
	return a.streamAttempt.Move(ctx, m)
}

// giveUp records the attempt as over, and gives its bucket to whoever asks next.
func (a *overdue) giveUp() {
	a.over.Store(true)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, a.bucket)
}

// An attempt is suspended while its function does not heed its context: the engine gives it up after ten seconds, and
// another attempt begins.
func TestAsyncUpdate_OfAFunctionThatOutlivesItsAttemptComesAgainToTheNextOne(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		const ackWait = 12 * time.Second
		q, r := newQueue(), newStreamRecord()
		q.Feed = memfeed.New(memfeed.Config{AckWait: ackWait})
		q.publish("a", "a", "b", "a", "c")
		stuck, let := make(chan struct{}), make(chan struct{})
		late := true // the function runs for the first time
		q.process = func(_ context.Context, _ string, place int) error {
			if place == 1 && late {
				late = false
				close(stuck)
				<-let
			}
			return nil
		}
		s := q.stream(threads)
		s.Idle = time.Second
		first := &overdue{streamAttempt: r.attempt()}
		ctx, suspend := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := work.DefineStream("sync", nil, s).Attempt(ctx, first, 0, work.Attempt{Number: 1, Stream: first})
			ended <- err
		}()
		<-stuck
		time.Sleep(time.Hour) // all that time its messages are in progress
		suspend(errSuspended)
		time.Sleep(10 * time.Second)
		first.giveUp()

		patient, giveUp := context.WithTimeout(t.Context(), 2*ackWait)
		defer giveUp()
		if err := attemptStream(t, patient, r, s); err != nil {
			t.Errorf("the next attempt: %v, acknowledged %d", err, q.Acknowledged())
		}
		q.wantAcked(t, upTo(5)...)
		wantItems(t, r, work.Counts{Done: 5})
		close(let)
		if err := <-ended; !errors.Is(err, errSuspended) {
			t.Errorf("the attempt that is over: %v", err)
		}
	})
}
