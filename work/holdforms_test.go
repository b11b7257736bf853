package work_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/workledger"
)

func TestHold_OfAChangeWhoseValueIsNullIsProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, broken, processed := newStreamRecord(), true, 0
		w := work.DefineStream("sync", nil, work.Stream[int, *int]{
			Rules: []work.Rule{{React: work.RetryLater}},
			Changes: func(context.Context, int, string) iter.Seq2[work.Change[*int], error] {
				return func(yield func(work.Change[*int], error) bool) {
					yield(work.Change[*int]{Key: "a", Token: "1"}, nil) // it was deleted
				}
			},
			Process: func(_ context.Context, c work.Change[*int]) error {
				if broken {
					return errDisk
				}
				if processed++; c.Value != nil || c.Key != "a" || c.Token != "1" {
					t.Errorf("the change is %+v", c)
				}
				return nil
			},
		})
		a := r.attempt()
		if _, err := w.Attempt(t.Context(), a, 0, work.Attempt{Number: 1, Stream: a}); err != nil {
			t.Fatal(err)
		}
		broken = false
		if got := r.retry(t.Context(), w, r.holds[0]); got != "success" || processed != 1 {
			t.Errorf("the hold: %s, processed %d times", got, processed)
		}
	})
}

func TestHold_OfAChangeThatCouldNotBeReadForNoStatedReasonIsNotProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, processed := newStreamRecord(), 0
		s := stream{
			Rules: []work.Rule{{React: work.Park}},
			Changes: func(context.Context, int, string) iter.Seq2[change, error] {
				return func(yield func(change, error) bool) {
					yield(change{Key: "k", Token: "7"}, behaviors.Code("x", errors.New(""), nil))
				}
			},
			Process: func(context.Context, change) error {
				processed++
				return nil
			},
		}
		runStream(t, r, s)
		got := r.retry(t.Context(), work.DefineStream("sync", nil, s), r.holds[0])
		if got == "success" || processed > 0 || len(r.holds[0].changes) != 1 {
			t.Errorf("the hold: %s, processed %d times, %d changes are left", got, processed, len(r.holds[0].changes))
		}
	})
}

// A definition may have its streams in another order when the hold is processed.
func TestHold_IsProcessedByItsStreamWhereverThatStandsNow(t *testing.T) {
	for _, of := range []string{"do", ""} {
		synctest.Test(t, func(t *testing.T) {
			src, r := &resource{keys: []string{"a"}}, newStreamRecord()
			src.process = func(context.Context, int) error { return errDisk }
			do := src.stream(1)
			do.ID, do.Rules = "do", []work.Rule{{React: work.RetryLater}}
			runStream(t, r, do)
			var by []string
			do.Process = func(ctx context.Context, _ change) error {
				info, _ := work.Run(ctx)
				by = append(by, info.Partition)
				return nil
			}
			think := do
			think.ID, think.Mode, think.Rules = "think", work.Simulate, nil
			r.holds[0].of = of
			got := r.retry(t.Context(), work.DefineStream("sync", nil, think, do), r.holds[0])
			if got != "success" || fmt.Sprint(by) != "[do]" {
				t.Errorf("of stream %q: %s, processed by %q", of, got, by)
			}
		})
	}
}

func TestHold_RecordsEachSecondWhatItHasProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := &resource{}, newStreamRecord()
		for range 500 {
			src.keys = append(src.keys, "a")
		}
		broken := true
		src.process = func(context.Context, int) error {
			if broken {
				return errDisk
			}
			time.Sleep(99 * time.Millisecond)
			return nil
		}
		s := src.stream(1)
		s.Rules = []work.Rule{{React: work.RetryLater}}
		runStream(t, r, s)
		broken = false
		done := make(chan string)
		go func() { done <- r.retry(t.Context(), work.DefineStream("sync", nil, s), r.holds[0]) }()
		time.Sleep(20*time.Second + time.Millisecond/2)
		src.mu.Lock()
		r.mu.Lock()
		behind := len(r.holds[0].changes) - (500 - len(src.applied))
		r.mu.Unlock()
		src.mu.Unlock()
		if behind < 0 || behind > 10 {
			t.Errorf("a kill would have %d changes processed again", behind)
		}
		if got := <-done; got != "success" || src.users() != 500 {
			t.Errorf("%s, %d are applied", got, src.users())
		}
		src.inOrder(t)
	})
}

func TestHold_OfAStreamWhoseParametersAreNotKeptWaits(t *testing.T) {
	w := work.DefineStream("sync", nil, objects(1).stream(1))
	open := func(context.Context, task.Attempt) (workledger.Access, error) {
		return workledger.Access{}, fmt.Errorf("parameters are not kept: %w", workledger.ErrWaits)
	}
	ctx := context.WithValue(t.Context(), workledger.Key{}, workledger.Opener(open))
	if out := w.Run(ctx, task.Attempt{Task: "a/p.h1", Params: []byte("{}")}); !out.Release || out.Wait < time.Second {
		t.Errorf("%+v", out)
	}
}

func TestLiveSync_AChangeThatIsTooLargeToBeHeldStopsTheStreamAsLimitsOfHoldsDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStreamRecord()
		w := work.DefineStream("sync", nil, work.Stream[int, string]{
			Rules: []work.Rule{{React: work.RetryLater}},
			Changes: func(context.Context, int, string) iter.Seq2[work.Change[string], error] {
				return func(yield func(work.Change[string], error) bool) {
					yield(work.Change[string]{Key: "a", Token: "1", Value: strings.Repeat("x", work.MaxHeldBytes)}, nil)
				}
			},
			Process: func(context.Context, work.Change[string]) error { return errDisk },
		})
		policy, _ := task.Policy{}.Complete()
		out := w.Run(r.attempt().access(t.Context()), task.Attempt{
			Task:   "a/p",
			Number: 1,
			Policy: policy,
			Params: []byte("0"),
		})
		if out.Err == nil || out.Err.Code != "holds" || !strings.Contains(out.Err.Message, "limit of 196608") {
			t.Errorf("%+v", out.Err)
		}
		wantToken(t, r, "")
	})
}
