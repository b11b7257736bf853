package engine

import (
	"errors"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/projection"
)

// waiting registers a future that waits for a run of a life.
func (b *bench) waiting(life events.Ref, run uint32) *Future {
	f := &Future{futures: b.m.futures, id: "x", life: life, run: run}
	f.Done()
	return f
}

// failure is the error that the future has come to.
func (f *Future) failure() error {
	_, err := f.value.Get()
	return err
}

func (f *Future) isResolved() bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}

func ending(life events.Ref, run uint32, result string) outcome.Outcome {
	return outcome.Outcome{Task: "x", Life: life, Run: run, Ref: events.RefOf(100, int(run)), Status: projection.Success,
		Behavior: benchBehavior, Result: events.JSON([]byte(result))}
}

// A submit joined run 2 while the news of run 1 were still on their way.
func TestFuture_OutcomeOfAnEarlierRunDoesNotResolveIt(t *testing.T) {
	b := newBench(t, -1)
	life := events.RefOf(1, 0)
	f := b.waiting(life, 2)
	b.m.futures.tell(0, []outcome.Outcome{ending(life, 1, "1")})
	if f.isResolved() {
		result, _ := f.value.Get()
		t.Fatalf("resolved with %s, which is of run 1", result)
	}
	b.m.futures.tell(0, []outcome.Outcome{ending(life, 2, "2")})
	if result, err := f.value.Get(); !f.isResolved() || string(result) != "2" || err != nil {
		t.Errorf("result is %s, %v; want that of run 2", result, err)
	}
}

// The task was deleted and submitted anew, and news of its first life come late.
func TestFuture_OutcomeOfAnEarlierLifeDoesNotResolveIt(t *testing.T) {
	b := newBench(t, -1)
	first, second := events.RefOf(1, 0), events.RefOf(5, 0)
	f := b.waiting(second, 1)
	deleted := ending(first, 2, "")
	deleted.Status, deleted.Result, deleted.Rest = 0, nil, true
	b.m.futures.tell(0, []outcome.Outcome{ending(first, 1, "1"), deleted})
	if f.isResolved() {
		result, err := f.value.Get()
		t.Fatalf("resolved with %s, %v by the life before", result, err)
	}
	b.m.futures.tell(0, []outcome.Outcome{ending(second, 1, "2")})
	if result, err := f.value.Get(); !f.isResolved() || string(result) != "2" {
		t.Errorf("result is %s, %v; want that of the second life", result, err)
	}
}

func TestFuture_EndOfItsLifeResolvesIt(t *testing.T) {
	b := newBench(t, -1)
	life := events.RefOf(1, 0)
	f := b.waiting(life, 3)
	deleted := outcome.Outcome{Task: "x", Life: life, Run: 2, Rest: true, Ref: events.RefOf(9, 0)}
	b.m.futures.tell(0, []outcome.Outcome{deleted})
	if !f.isResolved() || !errors.Is(f.failure(), ErrNotFound) {
		t.Errorf("error is %v, want %v", f.failure(), ErrNotFound)
	}
}

// An attempt that will be retried is no outcome; the final one is.
func TestFuture_RetriedFailureDoesNotResolveIt(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{MaxAttempts: 2})
	b.assign()
	f := b.waiting(b.task().Created, 1)
	b.accept(command.LaneWork, byPolicyFailure(b.task()))
	if f.isResolved() {
		t.Fatalf("resolved with %v by a failure that is retried", f.failure())
	}
	b.time = b.time.Add(1 << 40)
	b.assign()
	b.accept(command.LaneWork, byPolicyFailure(b.task()))
	var failure *TaskError
	if !f.isResolved() || !errors.As(f.failure(), &failure) || failure.Attempt != 2 {
		t.Errorf("error is %v, want the failure of attempt 2", f.failure())
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
