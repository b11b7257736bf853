package futures_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/futures"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// waiters are the futures of a process in a bubble of time; the test is the owner of their shard.
type waiters struct {
	*testing.T
	*futures.Registry
	mu    sync.Mutex
	asked []question
}

// question is one that is not answered.
type question struct {
	*command.Await
	answered func(command.Answer, error)
}

// Inquire implements futures.Sender.
func (w *waiters) Inquire(_ int, q command.Command, answered func(command.Answer, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, question{q.(*command.Await), answered})
}

// BusAway implements futures.Sender.
func (w *waiters) BusAway(int) bool { return true }

// Closed implements futures.Sender.
func (w *waiters) Closed() bool { return false }

func newWaiters(t *testing.T) *waiters { return newRecalling(t, nil) }

// newRecalling is newWaiters of a process that finds forgotten tasks.
func newRecalling(t *testing.T, recall func(context.Context, events.TaskID) (projection.Task, error)) *waiters {
	w := &waiters{T: t}
	w.Registry = futures.New(futures.Config{Sender: w, Shards: 1, Log: slog.New(slog.DiscardHandler), Recall: recall})
	return w
}

// future is the handle that a submit returned; run 0 is that of Attach.
func (w *waiters) future(life events.Ref, run uint32) *futures.Future {
	return w.futureSince(life, run, 0)
}

// futureSince is future of a run that no earlier event ends.
func (w *waiters) futureSince(life events.Ref, run uint32, since events.Ref) *futures.Future {
	f := new(futures.Future)
	f.Begin(w.Registry, futures.Run{Task: "a", Life: life, Number: run, Since: since})
	return f
}

// wait waits for the outcome of a future that lends nothing.
func wait(ctx context.Context, f *futures.Future) ([]byte, error) {
	return f.Wait(ctx, func(context.Context) func() { return func() {} })
}

// questions takes what was asked and answers it.
func (w *waiters) questions(a command.Answer) (all []*command.Await) {
	w.Helper()
	for {
		w.mu.Lock()
		asked := w.asked
		w.asked = nil
		w.mu.Unlock()
		if len(asked) == 0 {
			return all
		}
		for _, q := range asked {
			all = append(all, q.Await)
			q.answered(a, nil)
		}
	}
}

func (w *waiters) wantAsked(when string, n int, a command.Answer) {
	w.Helper()
	if got := len(w.questions(a)); got != n {
		w.Errorf("%s: %d questions, want %d", when, got, n)
	}
}

// wantOpen and wantResolved check whether a future is resolved, and with what.
func (w *waiters) wantOpen(when string, f *futures.Future) {
	w.Helper()
	select {
	case <-f.Done():
		result, err := wait(w.Context(), f)
		w.Errorf("%s: resolved with %s, %v", when, result, err)
	default:
	}
}

func (w *waiters) wantResolved(f *futures.Future, text string, target error) {
	w.Helper()
	select {
	case <-f.Done():
		if got, err := wait(w.Context(), f); string(got) != text || !errors.Is(err, target) {
			w.Errorf("resolved with %q, %v; want %q, %v", got, err, text, target)
		}
	default:
		w.Error("not resolved")
	}
}

// answerOf is the answer to a question that has an outcome.
func answerOf(o outcome.Outcome) command.Answer {
	return command.Answer{Data: outcome.Encode([]outcome.Outcome{o})[0]}
}

// ended is the SUCCESS of a run.
func ended(life events.Ref, run uint32) outcome.Outcome {
	return outcome.Outcome{Task: "a", Life: life, Run: run, Ref: life + events.Ref(run), Status: task.Success,
		Result: events.JSON([]byte(strconv.Itoa(int(run))))}
}

const lifeOne = events.Ref(1 << 20)

func TestFutures_CostNothingUntilSomebodyWaits(t *testing.T) {
	w := newWaiters(t)
	w.future(lifeOne, 1)
	w.wantAsked("nobody waits", 0, command.Answer{})
	if w.Open() != 0 {
		t.Error("a future that nobody waits for is registered")
	}
}

func TestFutures_RegisteredBeforeAskedSoThatNoOutcomeIsMissed(t *testing.T) {
	w := newWaiters(t)
	f := w.future(lifeOne, 1)
	f.Done()
	w.Deliver(0, []outcome.Outcome{ended(lifeOne, 1)}) // between registration and the answer to the question
	w.wantResolved(f, "1", nil)
	w.wantAsked("the question that was under way", 1, answerOf(ended(lifeOne, 1)))
	w.wantResolved(f, "1", nil)
}

func TestFutures_AnswerResolvesOrNamesTheRunToWaitFor(t *testing.T) {
	w := newWaiters(t)
	f := w.future(0, 0) // attached: which run, only the owner knows
	w.wantOpen("at first", f)
	w.Deliver(0, []outcome.Outcome{ended(lifeOne, 1)})
	w.wantOpen("by an outcome of who knows which run", f)
	w.wantAsked("both questions", 2, command.Answer{Life: lifeOne, Run: 2})
	w.Deliver(0, []outcome.Outcome{ended(lifeOne, 1)})
	w.wantOpen("by the run before", f)
	w.Deliver(0, []outcome.Outcome{ended(lifeOne, 2)})
	w.wantResolved(f, "2", nil)
}

func TestFutures_LaterRunOrLifeMakesThemAsk(t *testing.T) {
	for name, later := range map[string]outcome.Outcome{"run": ended(lifeOne, 2), "life": ended(2*lifeOne, 1), "elided": {Task: "a", Life: lifeOne, Run: 1,
		Ref: lifeOne + 1, Status: task.Success, Elided: true}} {
		w := newWaiters(t)
		f := w.future(lifeOne, 1)
		f.Done()
		w.wantAsked(name+": at first", 1, command.Answer{Life: lifeOne, Run: 1})
		w.Deliver(0, []outcome.Outcome{later})
		w.wantOpen(name+": by the outcome of another", f)
		w.wantAsked(name+": after it", 1, answerOf(ended(lifeOne, 1)))
		w.wantResolved(f, "1", nil)
	}
}

func TestFutures_OutcomesOfEarlierRunsAndLivesAreNotTheirs(t *testing.T) {
	w := newWaiters(t)
	f := w.future(2*lifeOne, 3)
	f.Done()
	w.questions(command.Answer{Life: 2 * lifeOne, Run: 3})
	gone := outcome.Outcome{Task: "a", Life: lifeOne, Run: 2}
	w.Deliver(0, []outcome.Outcome{ended(lifeOne, 9), ended(2*lifeOne, 2), gone})
	w.wantOpen("by what came before", f)
	w.wantAsked("what came before", 0, command.Answer{})
}

// A repetition that was cancelled before it began and the run that a later submit asked for have the same number.
func TestFutures_CancelledRepetitionIsNotTheRunThatFollows(t *testing.T) {
	cancelled := outcome.Outcome{Task: "a", Life: lifeOne, Run: 2, Ref: lifeOne + 9, Status: task.Failure, Err: &events.Error{Code: events.CodeCancelled}}
	succeeded := ended(lifeOne, 2)
	succeeded.Ref = lifeOne + 12
	for name, here := range map[string]bool{"heard": false, "remembered": true} {
		t.Run(name, func(t *testing.T) {
			w := newWaiters(t)
			if here {
				w.ServeHere(0, store.Head{})
				w.Report(0, []outcome.Outcome{cancelled})
			}
			f := w.futureSince(lifeOne, 2, lifeOne+11)
			f.Done()
			w.Deliver(0, []outcome.Outcome{cancelled})
			w.wantOpen("by the end of a run before its own", f)
			w.Deliver(0, []outcome.Outcome{succeeded})
			w.wantResolved(f, "2", nil)
		})
	}
}

// A task that had failed for good was to run again, and that was cancelled: the failure stays, and ends the run
// that was promised after it.
func TestFutures_RunsThatWerePromisedAndTakenAwayEndAtOnce(t *testing.T) {
	failed := outcome.Outcome{Task: "a", Life: lifeOne, Run: 1, Rest: true, Ref: lifeOne + 9, Status: task.Failure, Err: &events.Error{Code: events.CodeCancelled}}
	for name, c := range map[string]struct {
		run   uint32
		since events.Ref
		ends  bool
	}{
		"run whose retry was promised": {1, lifeOne + 8, true},
		"run after it":                 {2, lifeOne + 8, true},
		"run promised later":           {2, lifeOne + 10, false},
	} {
		for _, here := range []bool{false, true} {
			w := newWaiters(t)
			f := w.futureSince(lifeOne, c.run, c.since)
			if here {
				w.ServeHere(0, store.Head{})
				w.Report(0, []outcome.Outcome{failed})
			}
			f.Done()
			if !here {
				w.Deliver(0, []outcome.Outcome{failed})
			}
			if !c.ends {
				w.wantOpen(name, f)
				continue
			}
			w.wantResolved(f, "", task.ErrCancelled)
		}
	}
}

func TestFutures_EndOfLifeAndUnknownTaskAreNotFound(t *testing.T) {
	w := newWaiters(t)
	f := w.future(lifeOne, 1)
	f.Done()
	w.Deliver(0, []outcome.Outcome{{Task: "a", Life: lifeOne, Run: 1}}) // Deleted
	w.wantResolved(f, "", task.ErrNotFound)
	g := w.future(0, 0)
	g.Done()
	w.questions(command.Answer{Code: command.AnswerNotFound})
	w.wantResolved(g, "", task.ErrNotFound)
}

// Whoever got the result first may have deleted the task; the others still get the outcome of their run.
func TestFutures_DeletedResolvesOnlyTheRunsThatItEnds(t *testing.T) {
	due := outcome.Outcome{Task: "a", Life: lifeOne, Run: 3, Rest: true, Ref: lifeOne + 9}
	final := outcome.Outcome{Task: "a", Life: lifeOne, Run: 3, Rest: true, Ref: lifeOne + 9, Elided: true}
	for name, c := range map[string]struct {
		run     uint32
		deleted outcome.Outcome
		ends    bool
	}{
		"earlier run":                  {1, due, false},
		"run that was due":             {3, due, true},
		"run after the one due":        {4, due, true},
		"earlier run, the task final":  {2, final, false},
		"run that was taken away, too": {3, final, false},
	} {
		w := newWaiters(t)
		f := w.future(lifeOne, c.run)
		f.Done()
		w.wantAsked(name+": at first", 1, command.Answer{Life: lifeOne, Run: c.run})
		w.Deliver(0, []outcome.Outcome{c.deleted})
		if c.ends {
			w.wantAsked(name, 0, command.Answer{})
			w.wantResolved(f, "", task.ErrNotFound)
			continue
		}
		w.wantOpen(name, f)
		w.wantAsked(name, 1, answerOf(ended(lifeOne, c.run)))
		w.wantResolved(f, strconv.Itoa(int(c.run)), nil)
	}
}

// A task that nobody has in memory is looked for once at a time, and again as long as it cannot be read.
func TestFutures_OfAForgottenTaskWaitForWhoKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks []chan error
		w := newRecalling(t, func(context.Context, events.TaskID) (projection.Task, error) {
			look := make(chan error)
			looks = append(looks, look)
			return projection.Task{ID: "a", Status: task.Success, Forgotten: true, Result: events.JSON([]byte("9"))}, <-look
		})
		f := w.future(0, 0)
		f.Done()
		for range 2 {
			w.wantAsked("who attached", 1, command.Answer{Code: command.AnswerNotFound})
			synctest.Wait()
			w.Ask(f)
			w.wantAsked("while it is looked for", 1, command.Answer{Code: command.AnswerNotFound})
			synctest.Wait()
			if len(looks) != 1 {
				t.Fatalf("%d looks side by side", len(looks))
			}
			looks[0] <- store.ErrUnavailable
			synctest.Wait()
			w.wantOpen("by an archive that is away", f)
			looks = nil
			w.Ask(f)
		}
		w.wantAsked("the last time", 1, command.Answer{Code: command.AnswerNotFound})
		synctest.Wait()
		looks[0] <- nil
		synctest.Wait()
		w.wantResolved(f, "9", nil)
		w.Close()
	})
}

func TestFutures_RecentOutcomesResolveThoseThatComeAMomentLate(t *testing.T) {
	w := newWaiters(t)
	w.ServeHere(0, store.Head{})
	w.Report(0, []outcome.Outcome{ended(lifeOne, 1)})
	f := w.future(lifeOne, 1)
	w.wantResolved(f, "1", nil)
	w.wantAsked("what is known here", 0, command.Answer{})
	g := w.future(lifeOne, 2)
	w.wantOpen("by the run before", g)
	w.wantAsked("about a run that the owner here will tell of", 0, command.Answer{})
	w.Report(0, []outcome.Outcome{ended(lifeOne, 2)})
	w.wantResolved(g, "2", nil)
}

func TestFutures_WhatWasForgottenIsAskedFor(t *testing.T) {
	w := newWaiters(t)
	w.ServeHere(0, store.Head{})
	w.Report(0, []outcome.Outcome{ended(lifeOne, 1)})
	for i := range futures.MaxRecent {
		o := ended(lifeOne+events.Ref(i), 1)
		o.Task = events.TaskID("t" + strconv.Itoa(i))
		w.Report(0, []outcome.Outcome{o})
	}
	if got := w.Remembered(0); got != futures.MaxRecent {
		t.Errorf("%d outcomes are remembered, want %d", got, futures.MaxRecent)
	}
	f := w.future(lifeOne, 1)
	w.wantOpen("at first", f)
	w.wantAsked("about a forgotten outcome", 1, answerOf(ended(lifeOne, 1)))
	w.wantResolved(f, "1", nil)
}

func TestFutures_OwnerThatLeftIsNotRelied(t *testing.T) {
	w := newWaiters(t)
	w.ServeHere(0, store.Head{})
	w.Report(0, []outcome.Outcome{ended(lifeOne, 1)})
	w.ServeAway(0)
	f := w.future(lifeOne, 1)
	w.wantOpen("by the memory of an owner that has left", f)
	w.wantAsked("the new owner", 1, answerOf(ended(lifeOne, 1)))
	w.wantResolved(f, "1", nil)
}

func TestFutures_ResolveOnceAndEveryCallbackIsCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t)
		f := w.future(lifeOne, 1)
		calls := make(chan string, 10)
		f.Then(func(result []byte, err error) { calls <- string(result) })
		w.Deliver(0, []outcome.Outcome{ended(lifeOne, 1)})
		w.Deliver(0, []outcome.Outcome{{Task: "a", Life: lifeOne, Run: 1, Status: task.Failure, Err: &events.Error{Code: "x"}}})
		f.Close()
		f.Then(func(result []byte, err error) { calls <- string(result) })
		synctest.Wait()
		if len(calls) != 2 || <-calls != "1" || <-calls != "1" {
			t.Error("want two callbacks with the first result")
		}
		w.wantResolved(f, "1", nil)
	})
}

// Some give up meanwhile, and what they waited with is used again: it must neither be missing a value nor have one
// too many.
func TestFuture_EveryWaiterIsWokenOnceOrLeaves(t *testing.T) {
	w := newWaiters(t)
	for round := range 50 {
		f, never := w.future(lifeOne, 1), w.future(lifeOne, 2)
		f.Done() // so that it hears what is told
		var all sync.WaitGroup
		for i := range 8 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			all.Go(func() {
				got, err := wait(ctx, f)
				if gaveUp := i%2 == 0 && errors.Is(err, context.Canceled); !gaveUp && (err != nil || string(got) != "1") {
					t.Errorf("round %d, waiter %d: %q, %v", round, i, got, err)
				}
			})
			all.Go(func() {
				if _, err := wait(ctx, never); !errors.Is(err, context.Canceled) {
					t.Errorf("round %d: a future that is not resolved ends with %v", round, err)
				}
			})
			if i%2 == 0 {
				all.Go(cancel)
			} else {
				all.Go(func() {
					<-f.Done()
					cancel()
				})
			}
		}
		all.Go(func() { w.Deliver(0, []outcome.Outcome{ended(lifeOne, 1)}) })
		all.Wait()
		never.Close()
		if f.HasWaiters() || never.HasWaiters() {
			t.Errorf("round %d: waiters stay", round)
		}
	}
}

func TestFutures_CloseStopsWatching(t *testing.T) {
	w := newWaiters(t)
	f, other := w.future(lifeOne, 1), w.future(lifeOne, 1)
	f.Done()
	other.Done()
	f.Close()
	w.wantResolved(f, "", task.ErrClosed)
	w.Deliver(0, []outcome.Outcome{ended(lifeOne, 1)})
	w.wantResolved(f, "", task.ErrClosed)
	w.wantResolved(other, "1", nil)
	if w.Open() != 0 {
		t.Error("futures stay registered")
	}
}

func TestFutures_EndOfTheClientResolvesThemAndWaitsForCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t)
		f := w.future(lifeOne, 1)
		called := false
		f.Then(func([]byte, error) {
			time.Sleep(time.Minute)
			called = true
		})
		w.Close()
		if !called {
			t.Error("the callback is still running")
		}
		w.wantResolved(f, "", task.ErrClosed)
	})
}

func TestFutures_SweepAsksAgainAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = w.Registry.Run(ctx) }()
		f := w.future(lifeOne, 1)
		f.Done()
		var at []int
		begin := time.Now()
		for range 300 {
			synctest.Wait()
			for range w.questions(command.Answer{Life: lifeOne, Run: 1}) {
				at = append(at, int(time.Since(begin).Seconds()))
			}
			time.Sleep(time.Second)
		}
		if len(at) < 6 || at[0] != 0 {
			t.Fatalf("asked after %v seconds", at)
		}
		for i := 1; i < len(at); i++ {
			gap, least := at[i]-at[i-1], min(5<<(i-1), 60)
			if gap < least || gap > least+2 {
				t.Errorf("asked after %v seconds: gap %d is %d, want about %d", at, i, gap, least)
			}
		}
		w.Missed()
		synctest.Wait()
		w.wantAsked("when news may have been missed", 1, answerOf(ended(lifeOne, 1)))
		w.wantResolved(f, "1", nil)
		cancel()
	})
}

func TestFuture_OfARefusedSubmitHasItsError(t *testing.T) {
	f := new(futures.Future)
	f.Fail(store.ErrUnavailable)
	if _, err := wait(t.Context(), f); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("waited: %v", err)
	}
	got := make(chan error, 1)
	f.Then(func(_ []byte, err error) { got <- err })
	if err := <-got; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("callback with %v", err)
	}
	f.Close()
}

func TestFutures_ClosedBesideAFirstLookLeavesNothingRegistered(t *testing.T) {
	w := newWaiters(t)
	for range 2000 {
		f := w.future(lifeOne, 1)
		var both sync.WaitGroup
		both.Go(f.Close)
		both.Go(func() { f.Done() })
		both.Wait()
		w.wantResolved(f, "", task.ErrClosed)
	}
	if n := w.Open(); n != 0 {
		t.Errorf("%d closed futures are registered", n)
	}
}

// A full store heals, so an outcome is waited for: it is asked for once a second.
func TestFutures_WaitGoesOnWhileTheStoreIsFull(t *testing.T) {
	for _, run := range []uint32{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWaiters(t)
			f := w.future(lifeOne*events.Ref(run), run)
			got := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			swept := make(chan error, 1)
			go func() { swept <- w.Registry.Run(ctx) }()
			go func() {
				_, err := wait(t.Context(), f)
				got <- err
			}()
			synctest.Wait()
			w.wantAsked("at first", 1, command.Answer{Code: command.AnswerStoreFull})
			for range 70 {
				time.Sleep(2 * futures.SweepEvery)
				synctest.Wait() // the sweep of this moment
				if len(w.questions(command.Answer{Code: command.AnswerStoreFull})) == 0 {
					t.Fatal("nobody asks again")
				}
			}
			time.Sleep(2 * futures.SweepEvery)
			synctest.Wait()
			w.wantAsked("when there is room", 1, answerOf(outcome.Outcome{Task: "a", Life: lifeOne, Run: 1, Status: task.Success}))
			if err := <-got; err != nil {
				t.Errorf("run %d: %v", run, err)
			}
			cancel()
			<-swept
		})
	}
}
