package work_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"taskledger/work"
)

// batched makes a run of a stream with a batch of ten in three attempts. The first one ends behind eight changes, and
// the second one behind the tenth, before the end of the run is recorded.
func batched(t *testing.T, r *streamRecord, s stream, end *int) {
	t.Helper()
	s.Batch = 10
	*end = 8
	ctx, suspend := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Minute, func() { suspend(errSuspended) })
	if err := attemptStream(t, ctx, r, s); !errors.Is(err, errSuspended) {
		t.Fatalf("the first attempt: %v", err)
	}
	wantItems(t, r, work.Counts{Done: 8})
	*end = 30
	a := r.attempt()
	unrecorded := work.DefineStream("sync", nil, s)
	_, err := unrecorded.Attempt(t.Context(), dying{a}, 0, work.Attempt{Stream: a})
	if !errors.Is(err, errDisk) || len(r.wrong) > 0 {
		t.Fatalf("the second attempt: %v, %q", err, r.wrong)
	}
	wantItems(t, r, work.Counts{Done: 10})
	clear(r.record.open)
	runStream(t, r, s)
	wantItems(t, r, work.Counts{Done: 10})
	runStream(t, r, s)
	wantItems(t, r, work.Counts{Done: 20})
}

// dying is the ledger of an attempt whose node dies before it reports a bucket.
type dying struct{ *streamAttempt }

func (a dying) Next(ctx context.Context, r work.Report) (work.Answer, error) {
	if r.Bucket != 0 {
		return work.Answer{}, errDisk
	}
	return a.streamAttempt.Next(ctx, r)
}

// until returns a function of changes that hangs behind a place while its context goes on.
func until(end *int) func(context.Context, int) error {
	return func(ctx context.Context, place int) error {
		if place > *end {
			<-ctx.Done()
		}
		return ctx.Err()
	}
}

func TestLiveSync_ABatchCountsThroughAllAttemptsOfItsRun(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(30), newStreamRecord()
		var end int
		src.process = until(&end)
		batched(t, r, src.stream(threads), &end)
		wantToken(t, r, "20")
		if n := src.users(); n != 20 {
			t.Errorf("%d users", n)
		}
	})
}

func TestAsyncUpdate_ABatchCountsThroughAllAttemptsOfItsRun(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue(slices.Repeat([]string{"a"}, 30)...), newStreamRecord()
		var end int
		process := until(&end)
		q.process = func(ctx context.Context, _ string, place int) error { return process(ctx, place) }
		batched(t, r, q.stream(threads), &end)
		q.wantAcked(t, upTo(20)...)
	})
}
