package worker_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/worker"
	"taskledger/events"
	"taskledger/task"
)

// A function that returns the cause of its context tells the same as the engine does.
func TestExecutor_TimeOutIsToldOnce(t *testing.T) {
	for returned, want := range map[string]string{
		worker.ErrTimeout.Error():            worker.ErrTimeout.Error(),
		"copy: " + worker.ErrTimeout.Error(): worker.ErrTimeout.Error() + ": copy",
		"3 files are left":                   worker.ErrTimeout.Error() + ": 3 files are left",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newFixture(t, 1, nil, &script{"b", func(ctx context.Context, a task.Attempt) task.Outcome {
				<-ctx.Done()
				return task.Outcome{Err: &events.Error{Code: "x", Message: returned}, Next: worker.ByPolicy}
			}})
			w.launch("b", task.Policy{Timeout: time.Minute})
			time.Sleep(time.Minute)
			synctest.Wait()
			if c := w.outcome(); c.How != command.Failed || c.Error.Message != want {
				t.Errorf("%+v, %+v, want %s", c, c.Error, want)
			}
		})
	}
}

func TestExecutor_TimeOutIsRecordedWhenTheFunctionReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, nil, &script{"b", func(ctx context.Context, a task.Attempt) task.Outcome {
			if want := time.Now().Add(time.Minute); !a.Deadline.Equal(want) {
				t.Errorf("deadline %s, want %s", a.Deadline, want)
			}
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			return task.Outcome{Err: &events.Error{Code: "x", Message: "gave up"}, Next: worker.ByPolicy}
		}})
		w.launch("b", task.Policy{Timeout: time.Minute})
		time.Sleep(time.Minute + 2*time.Second)
		w.wantNothing("before the function returned")
		time.Sleep(time.Second)
		synctest.Wait()
		c := w.outcome()
		if c.How != command.Failed || c.Error.Code != events.CodeTimeout || !strings.Contains(c.Error.Message, "gave up") || !c.ByPolicy {
			t.Errorf("%+v, %+v", c, c.Error)
		}
	})
}

func TestExecutor_SuccessAfterItsTimeOutCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, nil, &script{"b", func(ctx context.Context, _ task.Attempt) task.Outcome { <-ctx.Done(); return task.Outcome{} }})
		w.launch("b", task.Policy{Timeout: time.Minute})
		time.Sleep(time.Minute)
		synctest.Wait()
		if c := w.outcome(); c.How != command.Succeeded {
			t.Errorf("%+v", c)
		}
	})
}

// The session ends while the function runs, which then returns an error, or a result: neither counts.
func TestExecutor_ReportsNothingOfAnEndedSession(t *testing.T) {
	for name, out := range map[string]task.Outcome{"Success": {}, "Failure": {Err: &events.Error{Code: events.CodeFailed}}} {
		t.Run(name, func(t *testing.T) {
			running := make(chan struct{})
			w := newFixture(t, 1, nil, &script{"b", func(ctx context.Context, _ task.Attempt) task.Outcome {
				close(running)
				<-ctx.Done()
				return out
			}})
			freed := make(chan struct{}, 1)
			w.exec.Freed = func() { freed <- struct{}{} }
			session, end := context.WithCancel(t.Context())
			w.begin(session, selfID)
			w.launch("b", task.Policy{})
			await(t, running, "the attempt")
			end()
			await(t, freed, "the slot")
			w.wantNothing("of an ended session")
		})
	}
}

func TestOutcome_ResultBeyondTheLimitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, nil, &script{"b", func(context.Context, task.Attempt) task.Outcome {
			return task.Outcome{Result: make([]byte, events.MaxPayloadBytes+1)}
		}})
		w.launch("b", task.Policy{})
		synctest.Wait()
		if c := w.outcome(); c.How != command.Failed || c.Error.Code != events.CodeRejected || c.Result != nil || c.ByPolicy || c.Next != 0 {
			t.Errorf("%+v, %+v", c, c.Error)
		}
	})
}

func TestOutcome_TellsTheOwnerOfTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out task.Outcome
		w := newFixture(t, 1, nil, &script{"b", func(context.Context, task.Attempt) task.Outcome { return out }})
		for _, c := range []struct {
			out  task.Outcome
			next events.Millis
			wait time.Duration
		}{
			{task.Outcome{}, 0, 0},
			{task.Outcome{Wait: -1}, 0, 0},
			{task.Outcome{Wait: 1}, command.AnyTime, time.Millisecond},
			{task.Outcome{Wait: time.Second}, command.AnyTime, time.Second},
			{task.Outcome{Wait: math.MaxInt64}, command.AnyTime, time.Duration(math.MaxInt64).Truncate(time.Millisecond)},
			{task.Outcome{Next: time.Unix(0, 0)}, command.AnyTime, 0},
			{task.Outcome{Next: time.Now().Add(time.Minute)}, events.MillisOf(time.Now()).Add(time.Minute), time.Minute},
			{task.Outcome{Next: time.Now().Add(-time.Minute)}, events.MillisOf(time.Now()).Add(-time.Minute), 0},
			{task.Outcome{Next: time.Now().Add(time.Minute), Wait: time.Hour}, events.MillisOf(time.Now()).Add(time.Minute), time.Hour},
		} {
			for _, err := range []*events.Error{nil, {Code: "x"}} {
				out = c.out
				out.Err = err
				w.launch("b", task.Policy{})
				synctest.Wait()
				if got := w.outcome(); got.Next != c.next || got.Wait != c.wait || (got.How == command.Failed) != (err != nil) {
					t.Errorf("%+v: next run at %d, in %s; want %d, %s", out, got.Next, got.Wait, c.next, c.wait)
				}
			}
		}
	})
}

// While releases differ, another node may well read what this one does not.
func TestOutcome_UnreadParametersAreRetriedByThePolicyWhileTypesDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, nil, &script{"b", func(context.Context, task.Attempt) task.Outcome {
			return task.Outcome{Err: &events.Error{Code: events.CodeRejected}, Unread: true}
		}})
		for _, differ := range []bool{false, true} {
			w.host.differ = differ
			w.launch("b", task.Policy{})
			synctest.Wait()
			if c := w.outcome(); c.How != command.Failed || c.ByPolicy != differ {
				t.Errorf("types differ: %t: %+v", differ, c)
			}
		}
	})
}
