package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/worker"
	"taskledger/events"
	"taskledger/task"
)

// held is a worker with one attempt, of a time-out of a minute, whose function does not look at its context and
// returns when it is told to.
type held struct {
	*fixture
	ctx     context.Context // of the attempt
	started events.Ref
	out     chan task.Outcome
}

func newHeld(t *testing.T, prepare ...func(w *fixture)) *held {
	t.Helper()
	contexts, out := make(chan context.Context), make(chan task.Outcome, 1)
	h := &held{out: out, fixture: newFixture(t, 1, nil, &script{"b", func(ctx context.Context, _ task.Attempt) task.Outcome {
		contexts <- ctx
		return <-out
	}})}
	for _, f := range prepare {
		f(h.fixture)
	}
	h.started = h.launch("b", task.Policy{Timeout: time.Minute})
	h.ctx = <-contexts
	t.Cleanup(func() { h.returns(task.Outcome{}) })
	return h
}

// returns lets the function return, if it has not.
func (h *held) returns(out task.Outcome) {
	select {
	case h.out <- out:
	default:
	}
	synctest.Wait()
}

var errSessionOver = errors.New("the session is over")

// ends are the ways in which the context of an attempt ends.
var ends = []struct {
	name       string
	end        func(h *held)
	err, cause error
}{
	{"cancelled", func(h *held) { h.exec.Cancel(0, h.started, task.ErrCancelled) }, context.Canceled, task.ErrCancelled},
	{"drained", func(h *held) { h.exec.CancelAll(h.session, worker.ErrDraining) }, context.Canceled, worker.ErrDraining},
	{"fenced", func(h *held) { h.exec.CancelAll(h.session, worker.ErrFenced) }, context.Canceled, worker.ErrFenced},
	{"timed out", func(h *held) { time.Sleep(time.Minute) }, context.DeadlineExceeded, worker.ErrTimeout},
	{"session over", func(h *held) { h.end(errSessionOver) }, context.Canceled, errSessionOver},
	{"returned", func(h *held) { h.returns(task.Outcome{}) }, context.Canceled, context.Canceled},
}

func wantEnded(t *testing.T, name string, ctx context.Context, err, cause error) {
	t.Helper()
	select {
	case <-ctx.Done():
	default:
		t.Errorf("%s: has not ended", name)
	}
	if ctx.Err() != err || context.Cause(ctx) != cause {
		t.Errorf("%s: %v, because %v; want %v, because %v", name, ctx.Err(), context.Cause(ctx), err, cause)
	}
}

// wrapper is a context that a user made of another.
type wrapper struct{ context.Context }

// derive returns contexts that users derive, and how many functions of AfterFunc have been called.
func derive(t *testing.T, ctx context.Context) (all map[string]context.Context, called *atomic.Int32) {
	all, called = map[string]context.Context{"value": context.WithValue(ctx, wrapper{}, 1), "wrapper": &wrapper{ctx}}, new(atomic.Int32)
	for _, from := range []string{"value", "wrapper"} {
		cancelled, cancel := context.WithCancel(all[from])
		t.Cleanup(cancel)
		timed, stop := context.WithTimeout(all[from], time.Hour)
		t.Cleanup(stop)
		all["cancel of "+from], all["timeout of "+from] = cancelled, timed
		context.AfterFunc(all[from], func() { called.Add(1) })
	}
	return all, called
}

func TestAttemptContext_EndsWithItsCauseAndAllThatIsDerivedFromIt(t *testing.T) {
	for _, e := range ends {
		for _, derived := range []string{"before", "after"} {
			t.Run(e.name+"/derived "+derived, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHeld(t)
					var all map[string]context.Context
					var called *atomic.Int32
					if derived == "before" {
						all, called = derive(t, h.ctx)
						synctest.Wait()
						if h.ctx.Err() != nil || context.Cause(h.ctx) != nil || called.Load() != 0 {
							t.Fatal("ended before its end")
						}
					}
					e.end(h)
					synctest.Wait()
					if derived == "after" {
						all, called = derive(t, h.ctx)
						synctest.Wait()
					}
					wantEnded(t, "attempt", h.ctx, e.err, e.cause)
					for name, ctx := range all {
						wantEnded(t, name, ctx, e.err, e.cause)
					}
					if called.Load() != 2 {
						t.Errorf("%d of 2 functions were called after the end", called.Load())
					}
				})
			})
		}
	}
}

func TestAttemptContext_FirstEndCountsThoughNobodyLooked(t *testing.T) {
	for _, first := range ends {
		for _, second := range ends {
			t.Run(first.name+" then "+second.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHeld(t)
					first.end(h)
					synctest.Wait()
					second.end(h)
					synctest.Wait()
					wantEnded(t, "attempt", h.ctx, first.err, first.cause)
				})
			})
		}
	}
}

func TestAttemptContext_ErrIsEnoughToSeeTheEnd(t *testing.T) {
	for _, e := range ends {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld(t)
			if err := h.ctx.Err(); err != nil {
				t.Errorf("%s: %v before the end", e.name, err)
			}
			e.end(h)
			synctest.Wait()
			if err := h.ctx.Err(); err != e.err {
				t.Errorf("%s: %v, want %v", e.name, err, e.err)
			}
		})
	}
}

func TestAttemptContext_TimeOutCountsFromTheLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(t)
		want := time.Now().Add(time.Minute)
		time.Sleep(40 * time.Second)
		done := h.ctx.Done() // the first look
		if deadline, ok := h.ctx.Deadline(); !ok || !deadline.Equal(want) {
			t.Errorf("deadline %s, %t, want %s", deadline, ok, want)
		}
		<-done
		if now := time.Now(); !now.Equal(want) {
			t.Errorf("ended %s after the deadline", now.Sub(want))
		}
	})
}

func TestAttemptContext_WithoutTimeOutHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, nil, &script{"b", func(ctx context.Context, a task.Attempt) task.Outcome {
			if deadline, ok := ctx.Deadline(); ok || !a.Deadline.IsZero() {
				t.Errorf("deadline %s", deadline)
			}
			time.Sleep(1000 * time.Hour)
			if err := ctx.Err(); err != nil {
				t.Errorf("ended: %v", err)
			}
			return task.Outcome{}
		}})
		w.launch("b", task.Policy{})
		synctest.Wait()
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		w.outcome()
	})
}

func TestAttemptContext_DerivedContextsNeedNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(t)
		end := make(chan struct{})
		defer close(end)
		running := startedBy(t, func() {
			go func() { <-end }() // one that is counted
			for range 100 {
				derive(t, h.ctx)
			}
		})
		synctest.Wait()
		if got := running() - 1; got != 0 {
			t.Errorf("%d goroutines for 600 derived contexts", got)
		}
	})
}

// startedBy calls f, and returns what counts the goroutines that it has started and that have not ended.
func startedBy(t *testing.T, f func()) (count func() int) {
	const label = "started by"
	pprof.Do(context.Background(), pprof.Labels(label, t.Name()), func(context.Context) { f() })
	return func() (n int) {
		var profile bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
			t.Fatal(err)
		}
		_, entries, _ := strings.Cut(profile.String(), "\n")
		for entry := range strings.SplitSeq(entries, "\n\n") {
			if !strings.Contains(entry, fmt.Sprintf("%q:%q", label, t.Name())) {
				continue
			}
			var alike int
			if _, err := fmt.Sscan(entry, &alike); err != nil {
				t.Fatal(err)
			}
			n += alike
		}
		return n
	}
}

func TestAttemptContext_ShowsTheValuesOfTheSession(t *testing.T) {
	for _, when := range []string{"during the attempt", "after it"} {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld(t, func(w *fixture) { w.begin(context.WithValue(w.base, wrapper{}, "v"), selfID) })
			if when == "after it" {
				h.returns(task.Outcome{})
			}
			if got := h.ctx.Value(wrapper{}); got != "v" {
				t.Errorf("value %v %s", got, when)
			}
		})
	}
}

// countingContext counts who asks for its end.
type countingContext struct {
	context.Context
	asked atomic.Int32
}

func (c *countingContext) Done() <-chan struct{} {
	c.asked.Add(1)
	return c.Context.Done()
}

// Entering contexts with their parent is what makes them expensive.
func TestAttemptContext_IsEnteredWithItsParentOnlyWhenSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parent *countingContext
		h := newHeld(t, func(w *fixture) {
			parent = &countingContext{Context: w.base}
			w.begin(parent, selfID)
			w.session.SetParents(parent)
			parent.asked.Store(0) // by the session
		})
		h.ctx.Deadline()
		h.ctx.Err()
		h.returns(task.Outcome{Err: &events.Error{Code: "x"}})
		if parent.asked.Load() != 0 {
			t.Error("entered although nobody looked")
		}
	})
}

func TestAttemptContext_ManyMayLookWhileItEnds(t *testing.T) {
	for _, e := range ends {
		t.Run(e.name, func(t *testing.T) {
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					h := newHeld(t)
					channels := make([]<-chan struct{}, 8)
					var all sync.WaitGroup
					for i := range channels {
						all.Go(func() {
							if i%2 == 0 {
								time.Sleep(time.Minute - 1) // near the time-out, or after the end
							}
							if h.ctx.Err() != nil && context.Cause(h.ctx) == nil {
								t.Error("no cause of the end")
							}
							_ = fmt.Sprint(h.ctx)
							h.ctx.Deadline()
							derived, cancel := context.WithCancel(h.ctx)
							defer cancel()
							channels[i] = h.ctx.Done()
							<-derived.Done()
							wantEnded(t, "derived", derived, e.err, e.cause)
						})
					}
					e.end(h)
					all.Wait()
					for _, c := range channels {
						if c != channels[0] {
							t.Error("two channels tell of one end")
						}
					}
				})
			}
		})
	}
}

// What becomes of an error depends on why the context ended, whether or not the function looked.
func TestExecutor_OutcomeFollowsFromAnEndThatNobodyLookedAt(t *testing.T) {
	for _, e := range ends {
		t.Run(e.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeld(t)
				if e.name != "returned" {
					e.end(h)
				}
				synctest.Wait()
				h.returns(task.Outcome{Err: &events.Error{Code: "x"}})
				if e.cause == worker.ErrFenced || e.cause == errSessionOver {
					h.wantNothing("after the end of the session")
					return
				}
				c := h.outcome()
				switch {
				case e.cause == worker.ErrDraining:
					if c.How != command.Released {
						t.Errorf("%+v, want released", c)
					}
				case c.How != command.Failed || (c.Error.Code == events.CodeTimeout) != (e.cause == worker.ErrTimeout):
					t.Errorf("%+v, %+v", c, c.Error)
				}
			})
		})
	}
}

// A time-out may be hours, and thousands of short attempts come in each second.
func TestExecutor_KeepsNothingOfAnAttemptUntilItsTimeOut(t *testing.T) {
	w := newFixture(t, 2, nil, &script{"b", func(context.Context, task.Attempt) task.Outcome { return task.Outcome{} }})
	text := []byte(fmt.Sprintf("\x01%01000d", 7))
	params := weak.Make(&text[0])
	w.assign(command.Assignment{Behavior: "b", Params: text, Policy: task.Policy{Timeout: time.Hour}})
	for got := 0; got == 0; got = len(w.reported()) {
		<-w.inbox.woken
	}
	w.launch("b", task.Policy{}) // slices of the sender still hold the last one
	for deadline := time.Now().Add(20 * time.Second); params.Value() != nil; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("the parameters are still held")
		}
	}
}
