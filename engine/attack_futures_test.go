package engine

import (
	"errors"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/futures"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
)

// waiting registers a future that waits for a run of a life.
func (b *bench) waiting(life events.Ref, run uint32) *futures.Future {
	f := new(futures.Future)
	f.Begin(b.m.futures, futures.Run{Task: "x", Life: life, Number: run})
	f.Done()
	return f
}

// ended returns the error of a future, and whether it has ended.
func ended(t *testing.T, f *futures.Future) (bool, error) {
	t.Helper()
	select {
	case <-f.Done():
		_, err := f.Wait(t.Context(), nil)
		return true, err
	default:
		return false, nil
	}
}

// An attempt that will be retried is no outcome; the final one is.
func TestFuture_RetriedFailureDoesNotResolveIt(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{MaxAttempts: 2})
	b.assign()
	f := b.waiting(b.task().Created, 1)
	b.accept(command.LaneWork, byPolicyFailure(b.task()))
	if ended, err := ended(t, f); ended {
		t.Fatalf("resolved with %v by a failure that is retried", err)
	}
	b.time = b.time.Add(1 << 40)
	b.assign()
	b.accept(command.LaneWork, byPolicyFailure(b.task()))
	var failure *TaskError
	if ended, err := ended(t, f); !ended || !errors.As(err, &failure) || failure.Attempt != 2 {
		t.Errorf("error is %v, want the failure of attempt 2", err)
	}
}

// The outcome was told before anybody asked; the question must still find it, in whichever owner.
func TestFuture_ThatComesLateFindsItsOwnRun(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{Existing: events.RunAgain})
	life := b.task().Created
	for range 3 {
		b.assign()
		c := report(b.task(), command.Succeeded)
		c.Result = events.JSON([]byte{byte('1' + b.task().Runs)})
		b.accept(command.LaneWork, c)
		b.submit(Policy{Existing: events.RunAgain})
	}
	for name, between := range map[string]func(){"SameOwner": func() {}, "NextOwner": b.takeOver} {
		between()
		a, later := b.own.await(&command.Await{Task: "x", Life: life, Run: 3})
		if later != nil {
			t.Fatalf("%s: run 3 is the last; it is not in the journal alone", name)
		}
		if a.Data != nil {
			got, err := outcome.Decode(a.Data)
			if err != nil || len(got) != 1 || got[0].Run != 3 || string(got[0].Result[1:]) != "3" {
				t.Errorf("%s: outcome is %+v, %v; want run 3", name, got, err)
			}
		}
	}
}
