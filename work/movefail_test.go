package work_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/task"
	"taskledger/work"
	"taskledger/work/workledger"
)

// flaky fails the first moves that hold something, before or after they are recorded.
type flaky struct {
	*streamAttempt
	fails    int
	err      error
	recorded bool
}

func (f *flaky) Move(ctx context.Context, m workledger.Move) (workledger.Moved, error) {
	if len(m.Holds) == 0 || f.fails == 0 {
		return f.streamAttempt.Move(ctx, m)
	}
	f.fails--
	if f.recorded {
		f.streamAttempt.Move(ctx, m)
	}
	return workledger.Moved{}, f.err
}

// However a move with holds fails, the token passes no change that is neither processed nor held, it never goes back,
// and nothing counts twice.
func TestLiveSync_AMoveWithHoldsThatFailsLosesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		recorded bool
		token    string // after the attempt
	}{
		"refused":              {&task.OverloadError{Cause: "full"}, false, "1"},
		"unknown":              {errors.New("no answer"), false, ""},
		"unknown and recorded": {errors.New("no answer"), true, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			withThreads(t, func(t *testing.T, threads int64) {
				src, r := &resource{keys: []string{"a", "b", "c"}}, newStreamRecord()
				broken := true
				src.process = func(_ context.Context, place int) error {
					if place == 2 && broken {
						time.Sleep(time.Millisecond) // the others have ended
						return errDisk
					}
					return nil
				}
				s := src.stream(threads)
				s.Rules = []work.Rule{{React: work.RetryLater}}
				w := work.DefineStream("sync", nil, s)
				a := r.attempt()
				moves := &flaky{a, 1, c.err, c.recorded}
				if _, err := w.Attempt(t.Context(), a, 0, work.Attempt{Number: 1, Stream: moves}); !errors.Is(err, c.err) {
					t.Fatalf("the attempt ended with %v", err)
				}
				if !c.recorded && (number(r.token) > 1 || len(r.holds) > 0) || c.recorded && len(r.holds) != 1 {
					t.Fatalf("token %q, holds %v", r.token, r.holds)
				}
				runStream(t, r, s)
				wantToken(t, r, "3")
				if len(r.holds) != 1 || r.holds[0].String() != "2:failed" {
					t.Fatalf("holds %v", r.holds)
				}
				broken = false
				if got := r.retry(t.Context(), w, r.holds[0]); got != "success" {
					t.Errorf("the hold: %s", got)
				}
				if src.users() != 3 {
					t.Errorf("%v is applied", src.applied)
				}
				if n := r.items(); n.Done+n.Failed != 3 {
					t.Errorf("items %+v of 3", n)
				}
			})
		})
	}
}

// While a move is under way nothing is passed, and as many changes as may wait for that can end meanwhile.
func TestLiveSync_GoesOnAfterAsManyChangesAsMayBeAheadHaveEndedDuringAMove(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(25_000), newStreamRecord()
		r.slow = 20 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := attemptStream(t, ctx, r, src.stream(threads)); err != nil {
			t.Fatal(err)
		}
		wantToken(t, r, "25000")
	})
}

// passing is a record whose holds end as soon as they are recorded, but for that of a key.
type passing struct {
	*streamAttempt
	stays    string
	asked    int
	freed    int
	appended int
}

func (p *passing) Position(context.Context) (workledger.Position, error) {
	p.asked++
	return workledger.Position{Held: []uint64{keyHash(p.stays)}}, nil
}

func (p *passing) Move(_ context.Context, m workledger.Move) (to workledger.Moved, err error) {
	for _, h := range m.Holds {
		switch {
		case !h.Append:
		case h.Key == p.stays:
			p.appended++
		default:
			to.Freed = append(to.Freed, h.Key)
			p.freed++
		}
	}
	return to, nil
}

// A run may have no end, and each key a hold some time.
func TestLiveSync_ForgetsTheKeysWhoseHoldsHaveEnded(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		const n = 2*work.MaxHolds + 1
		src := objects(n)
		src.keys = append(src.keys, "u1", "u2")
		src.process = func(_ context.Context, place int) error {
			if place > 1 && place <= n {
				return errDisk
			}
			return nil
		}
		src.fetch = func(_ context.Context, place int) error {
			if place == n+1 {
				time.Sleep(time.Hour) // all are held
			}
			return nil
		}
		s := src.stream(threads)
		s.Rules = []work.Rule{{React: work.RetryLater}}
		a := newStreamRecord().attempt()
		moves := &passing{streamAttempt: a, stays: "u1"}
		if _, err := work.DefineStream("sync", nil, s).Attempt(t.Context(), a, 0, work.Attempt{Number: 1, Stream: moves}); err != nil {
			t.Fatal(err)
		}
		if moves.asked != 2 || moves.appended != 2 || moves.freed != 0 || !slices.Equal(src.applied, []int{n + 2}) {
			t.Errorf("the record was asked %d times, %d changes of the key that is held were appended, %d of others, and %d are applied",
				moves.asked, moves.appended, moves.freed, src.applied)
		}
	})
}

func TestLiveSync_ASourceThatGoesRoundFailsTheAttemptWithinASecondRound(t *testing.T) {
	for _, round := range []int{1, 2, 100, 9_999, 12_345} {
		synctest.Test(t, func(t *testing.T) {
			src, r := objects(round), newStreamRecord()
			came := 0
			s := src.stream(8)
			s.Process = func(context.Context, change) error { return nil }
			s.Changes = goesRound(round, &came)
			err := attemptStreamOnce(t.Context(), r, s)
			if items, is := errors.AsType[*work.ItemsError](err); !is || came > 4*round+2 {
				t.Errorf("round of %d: after %d changes %v, %v", round, came, items, err)
			}
			if round < 10_000 && (came > round+2 || len(r.wrong) > 0) {
				t.Errorf("round of %d: found after %d changes; %q", round, came, r.wrong)
			}
		})
	}
}

// goesRound is a source whose tokens 1 to n come over and over again.
func goesRound(n int, came *int) func(context.Context, int, string) iter.Seq2[change, error] {
	return func(context.Context, int, string) iter.Seq2[change, error] {
		return func(yield func(change, error) bool) {
			for i := 0; ; i++ {
				*came = i + 1
				if !yield(change{Key: fmt.Sprint(i % n), Token: fmt.Sprint(i%n + 1)}, nil) {
					return
				}
			}
		}
	}
}

// attemptStreamOnce makes an attempt, and complains of nothing.
func attemptStreamOnce(ctx context.Context, r *streamRecord, s ...stream) error {
	a := r.attempt()
	_, err := work.DefineStream("sync", nil, s...).Attempt(ctx, a, 0, work.Attempt{Number: 1, Stream: a})
	return err
}

func TestLiveSync_APositionWithAnErrorFailsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStreamRecord()
		s := stream{
			Changes: func(context.Context, int, string) iter.Seq2[change, error] {
				return func(yield func(change, error) bool) {
					yield(change{Key: "k", Token: "7", Position: true}, errDisk)
				}
			},
			Process: func(context.Context, change) error { return nil },
		}
		if err := attemptStream(t, t.Context(), r, s); !errors.Is(err, errDisk) {
			t.Errorf("the attempt ended with %v", err)
		}
		wantToken(t, r, "")
	})
}

// The source tells its position by its clock behind its changes, and one comes between the simulation and the full
// stream.
func TestLiveSync_AfterASimulationThatEndsWithAPositionTheFullStreamEndsWithItsLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, calls := newStreamRecord(), 0
		changes := func(_ context.Context, _ int, token string) iter.Seq2[change, error] {
			calls++
			last := 2 + calls
			return func(yield func(change, error) bool) {
				for i := number(token)/100 + 1; i <= last; i++ {
					if !yield(change{Key: "k", Token: strconv.Itoa(i * 100)}, nil) {
						return
					}
				}
				yield(change{Token: strconv.Itoa(last*100 + calls), Position: true}, nil)
			}
		}
		var applied []string
		process := func(ctx context.Context, c change) error {
			if is, _ := work.Run(ctx); is.Mode == work.Full {
				applied = append(applied, c.Token)
			}
			return nil
		}
		think := stream{
			ID:      "think",
			Mode:    work.Simulate,
			Changes: changes,
			Process: process,
		}
		do := think
		do.ID, do.Mode = "do", work.Full
		runStream(t, r, think, do)
		if !slices.Equal(applied, []string{"100", "200", "300"}) {
			t.Errorf("simulated up to 300, the full stream applies %q", applied)
		}
		wantToken(t, r, "300")
	})
}

// What was processed within the second before is not repeated once there is room again.
func TestLiveSync_WhatWasProcessedIsRecordedBeforeHoldsWithoutRoomEndTheStream(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(20), newStreamRecord()
		src.process = func(_ context.Context, place int) error {
			if place == 7 {
				time.Sleep(100 * time.Millisecond) // others end meanwhile
				return errDisk
			}
			return nil
		}
		s := src.stream(threads)
		s.Rules = []work.Rule{{React: work.RetryLater}}
		r.full = true
		if err := attemptStream(t, t.Context(), r, s); !errors.Is(err, workledger.ErrOver) || !r.ended {
			t.Errorf("%v, ended is %t", err, r.ended)
		}
		wantToken(t, r, "6")
		wantItems(t, r, work.Counts{Done: 6})
		r.full = false
		runStream(t, r, s)
		wantToken(t, r, "20")
		wantItems(t, r, work.Counts{Done: 19, Failed: 1})
		if len(r.holds) != 1 || r.holds[0].String() != "7:failed" {
			t.Errorf("held %v", r.holds)
		}
	})
}
