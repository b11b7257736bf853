package worker_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/signal"
	"taskledger/engine/internal/worker"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// An outcome is delayed while a worker is on its way to the next attempt. If that one takes long, nobody may wait
// for it.
func TestExecutor_NoOutcomeWaitsForALongAttempt(t *testing.T) {
	release := make(chan struct{})
	quick := &script{"quick", func(context.Context, task.Attempt) task.Outcome { return task.Outcome{} }}
	slow := &script{"slow", func(context.Context, task.Attempt) task.Outcome {
		<-release
		return task.Outcome{}
	}}
	w := newFixture(t, 4096, nil, quick, slow)
	for round := range 200 {
		for range 3 {
			w.launch("quick", task.Policy{})
			w.launch("slow", task.Policy{})
		}
		late := time.After(30 * time.Second)
		for got := 0; got < 3; got += len(w.reported()) {
			select {
			case <-w.inbox.woken:
			case <-late:
				t.Fatalf("round %d: %d outcomes, want 3", round, got)
			}
		}
	}
	close(release)
}

// The last attempt that waits is taken while the outcome of another is delayed: somebody else must let that one leave.
func TestExecutor_HeldOutcomeLeavesBesideTheLastAttempt(t *testing.T) {
	w := newFixture(t, 2, nil, &script{"b", func(context.Context, task.Attempt) task.Outcome { return task.Outcome{} }})
	x, third := w.exec, &inbox{woken: signal.New()}
	w.sender.ServeHere(3, third)
	x.LetWait()
	if !x.Hold(3) {
		t.Fatal("an outcome is not delayed although a worker is on its way")
	}
	if third.rung() || !x.Next() {
		t.Fatal("the outcome is not delayed, or there is no attempt")
	}
	await(t, third.woken, "the outcome of shard 3")
	if w.inbox.rung() {
		t.Error("what waits for shard 0 leaves, of which no outcome is delayed")
	}
}

func TestExecutor_NeverRunsMoreThanItsSlotsAndLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most [2]atomic.Int32
		behavior := func(i int) task.Behavior {
			return &script{fmt.Sprint("b", i), func(context.Context, task.Attempt) task.Outcome {
				n := now[i].Add(1)
				for m := most[i].Load(); n > m && !most[i].CompareAndSwap(m, n); m = most[i].Load() {
				}
				time.Sleep(time.Second)
				now[i].Add(-1)
				return task.Outcome{}
			}}
		}
		w := newFixture(t, 5, map[string]int{"b1": 2}, behavior(0), behavior(1))
		made := 0
		for range 50 {
			for _, b := range []string{"b1", "b0"} {
				for w.exec.Free(b) {
					w.launch(b, task.Policy{})
					made++
				}
			}
			synctest.Wait()
			if total := now[0].Load() + now[1].Load(); total != 5 {
				t.Fatalf("%d attempts run on 5 slots", total)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if most[0].Load() > 5 || most[1].Load() != 2 {
			t.Errorf("at most %d and %d attempts ran at once, want 5 and 2", most[0].Load(), most[1].Load())
		}
		if got := len(w.reported()); got != made || made != 250 {
			t.Errorf("%d outcomes of %d attempts, want 250", got, made)
		}
	})
}

func TestExecutor_PanicAndGoexitAreFailedAttemptsWithTheirCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, nil,
			&script{"panics", func(context.Context, task.Attempt) task.Outcome { panic("no such table") }},
			&script{"exits", func(context.Context, task.Attempt) task.Outcome { runtime.Goexit(); return task.Outcome{} }},
			&script{"rants", func(context.Context, task.Attempt) task.Outcome { panic("no such row: " + strings.Repeat("x", 1<<20)) }},
			&script{"works", func(context.Context, task.Attempt) task.Outcome { return task.Outcome{Result: []byte("1")} }})
		for behavior, want := range map[string]string{
			"panics": "no such table",
			"rants":  "no such row",
			"exits":  "ended its goroutine",
		} {
			w.launch(behavior, task.Policy{})
			synctest.Wait()
			c := w.outcome()
			if c.How != command.Failed || c.Error.Code != events.CodePanic || !c.ByPolicy || !strings.Contains(c.Error.Message, want) {
				t.Errorf("%s: %+v, %+v", behavior, c, c.Error)
			}
			if behavior != "exits" && !strings.Contains(c.Error.Message, "executor_test.go") {
				t.Errorf("no stack in %.200q", c.Error.Message)
			}
		}
		w.launch("works", task.Policy{}) // the slot is free again
		synctest.Wait()
		if c := w.outcome(); c.How != command.Succeeded || string(c.Result) != string(events.JSON([]byte("1"))) {
			t.Errorf("%+v", c)
		}
	})
}

func TestExecutor_FunctionThatIgnoresItsEndIsOverAfterTenSecondsAndKeepsItsSlot(t *testing.T) {
	for name, end := range map[string]func(w *fixture, started events.Ref){
		"timeout":   func(*fixture, events.Ref) { time.Sleep(time.Minute) },
		"cancelled": func(w *fixture, started events.Ref) { w.exec.Cancel(0, started, task.ErrCancelled) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				w := newFixture(t, 1, nil, &script{"b", func(context.Context, task.Attempt) task.Outcome { <-release; return task.Outcome{} }})
				policy := task.Policy{}
				if name == "timeout" {
					policy.Timeout = time.Minute
				}
				end(w, w.launch("b", policy))
				time.Sleep(worker.Overdue - time.Millisecond)
				synctest.Wait()
				w.wantNothing("before ten seconds were over")
				time.Sleep(time.Millisecond)
				synctest.Wait()
				how, code := command.Released, events.CodeFailed // told to stop, which is no failed attempt
				if name == "timeout" {
					how, code = command.Failed, events.CodeTimeout
				}
				if c := w.outcome(); c.How != how || c.Error == nil || c.Error.Code != code {
					t.Errorf("%+v, %+v", c, c.Error)
				}
				if w.exec.Free("b") {
					t.Error("the slot is free while the function runs")
				}
				close(release)
				synctest.Wait()
				w.wantNothing("a second time")
				if !w.exec.Free("b") {
					t.Error("the slot is not free after the function has returned")
				}
			})
		})
	}
}

// unresponsive is a behavior that does not answer what follows a failure, until it is told to.
type unresponsive struct {
	script
	answer chan struct{}
}

// Failed implements task.Failer.
func (m *unresponsive) Failed(task.Attempt, *events.Error) (task.Outcome, bool) {
	<-m.answer
	return task.Outcome{}, false
}

func TestExecutor_OutcomeDoesNotWaitForABehaviorThatDoesNotSayWhatFollows(t *testing.T) {
	release := make(chan struct{})
	for name, run := range map[string]func(context.Context, task.Attempt) task.Outcome{
		"a panic":    func(context.Context, task.Attempt) task.Outcome { panic("no") },
		"a time-out": func(context.Context, task.Attempt) task.Outcome { <-release; return task.Outcome{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{})
				w := newFixture(t, 1, nil, &unresponsive{script{"b", run}, release})
				w.launch("b", task.Policy{Timeout: time.Minute})
				time.Sleep(time.Minute + 2*worker.Overdue)
				synctest.Wait()
				if c := w.outcome(); c.How != command.Failed {
					t.Errorf("%+v", c)
				}
				close(release)
				synctest.Wait()
				w.wantNothing("a second time")
			})
		})
	}
}

func TestExecutor_DrainRefusesWorkAndEndsWithTheLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 2, nil, &script{"b", func(ctx context.Context, _ task.Attempt) task.Outcome {
			<-ctx.Done()
			return task.Outcome{Err: &events.Error{Code: "x"}, Next: worker.ByPolicy}
		}})
		w.launch("b", task.Policy{})
		idle := w.exec.Drain()
		if w.exec.Free("b") || w.exec.Runs("b") || w.take("b") || w.exec.Unused() != 0 {
			t.Error("a draining node takes on work")
		}
		if n, _ := w.exec.Reserve(1, nil); n != 0 {
			t.Error("a draining node offers slots")
		}
		w.exec.CancelAll(w.session, worker.ErrDraining)
		synctest.Wait()
		select {
		case <-idle:
			t.Error("drained before the outcome was answered")
		default:
		}
		if c := w.outcome(); c.How != command.Released {
			t.Errorf("an attempt cut short by a drain ended as %+v", c)
		}
		synctest.Wait()
		select {
		case <-idle:
		default:
			t.Error("not drained")
		}
	})
}

func TestExecutor_FencedAttemptsReportNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, nil, &script{"b", func(ctx context.Context, _ task.Attempt) task.Outcome { <-ctx.Done(); return task.Outcome{} }})
		w.launch("b", task.Policy{})
		w.exec.CancelAll(w.session, worker.ErrFenced)
		synctest.Wait()
		w.wantNothing("by a fenced attempt")
		if !w.exec.Free("b") || len(w.exec.Names(w.session, 0)) != 0 {
			t.Error("a fenced attempt is remembered or keeps its slot")
		}
	})
}

// The commit took so long that the session is old when the assignment reaches the executor. If it is renewed after
// all, the task must run: nobody else will ever find out that it does not.
func TestExecutor_CallsNoFunctionWhileTheSessionIsOld(t *testing.T) {
	called := make(chan struct{}, 1)
	w := newFixture(t, 1, nil, &script{"b", func(context.Context, task.Attempt) task.Outcome {
		called <- struct{}{}
		return task.Outcome{}
	}})
	freed := make(chan struct{}, 2)
	w.exec.Freed = func() { freed <- struct{}{} }
	w.host.old.Store(true)
	w.launch("b", task.Policy{})
	await(t, freed, "the slot")
	select {
	case <-called:
		t.Fatal("the function was called")
	default:
	}
	w.host.old.Store(false)
	await(t, w.inbox.woken, "word that the attempt is given back")
	if c := w.outcome(); c.How != command.Released {
		t.Errorf("an attempt that was not made ended as %+v", c)
	}
	w.launch("b", task.Policy{})
	await(t, called, "the attempt after it")
}

func TestExecutor_WorkersAreReusedAndEndWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 4, nil, &script{"b", func(context.Context, task.Attempt) task.Outcome { return task.Outcome{} }})
		for range 10 {
			w.launch("b", task.Policy{})
			synctest.Wait()
		}
		w.reported()
		begin := time.Now()
		w.exec.AwaitWorkers()
		if took := time.Since(begin); took != worker.IdleWorker {
			t.Errorf("the last worker ended after %s, want %s", took, worker.IdleWorker)
		}
	})
}

func TestExecutor_StopTellsWhatItLeavesBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newFixture(t, 2, nil, &script{"b", func(context.Context, task.Attempt) task.Outcome { <-release; return task.Outcome{} }})
		w.launch("b", task.Policy{})
		w.exec.PlanPlaces("b") <- struct{}{}
		w.stopped = true
		begin := time.Now()
		w.wantLeft(time.Minute, 1, 1)
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("stopped after %s, want %s", took, time.Minute)
		}
		if w.exec.Detach(func() { t.Error("user code was called after the stop") }) {
			t.Error("user code is taken after the stop")
		}
		close(release)
	})
}

// The task is not to blame for a journal that cannot be read at the moment.
func TestExecutor_ParametersInTheJournalAreReadBeforeTheFunctionIsCalled(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		called bool
		how    command.Completion
	}{
		"there":        {nil, true, command.Succeeded},
		"out of reach": {store.ErrUnavailable, false, command.Snoozed},
		"trimmed":      {store.ErrTrimmed, false, command.Failed},
		"damaged":      {events.ErrDamaged, false, command.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				called := false
				w := newFixture(t, 1, nil, &script{"b", func(_ context.Context, a task.Attempt) task.Outcome {
					called = true
					if string(a.Params) != "7" {
						t.Errorf("parameters %q, want 7", a.Params)
					}
					return task.Outcome{}
				}})
				w.host.payload, w.host.err = events.JSON([]byte("7")), c.err
				w.assign(command.Assignment{Behavior: "b", ParamsAt: 1})
				synctest.Wait()
				out := w.outcome()
				if out.How != c.how || called != c.called || out.ByPolicy {
					t.Errorf("%+v, %+v; called: %t", out, out.Error, called)
				}
				if out.How == command.Failed && out.Error.Code != events.CodeRejected {
					t.Errorf("failed with %+v, want it rejected", out.Error)
				}
			})
		})
	}
}
