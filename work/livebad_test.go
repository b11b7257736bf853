package work_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"taskledger/store"
	"taskledger/work"
)

// yields returns the changes of a source as they are.
func yields(all ...change) func(context.Context, int, string) iter.Seq2[change, error] {
	return func(context.Context, int, string) iter.Seq2[change, error] {
		return func(yield func(change, error) bool) {
			for _, c := range all {
				time.Sleep(10 * time.Millisecond)
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

func TestBadStream_IsToldWithItsPositionAndNothingIsPassedOver(t *testing.T) {
	one, two := change{Key: "a", Token: "1"}, change{Key: "b", Token: "2"}
	for name, c := range map[string]struct {
		changes []change
		want    string
		token   string
	}{
		"the same token twice": {[]change{one, two, two}, `change 3 with the key "b" and the token "2": the change before it has`, "2"},
		"back to the beginning": {
			[]change{one, two, {Key: "c", Token: "0"}},
			`change 3 with the key "c" and the token "0": its token goes back to that at which the attempt began`, "2",
		},
		"back to an open one": {
			[]change{{Key: "slow", Token: "1"}, two, {Key: "c", Token: "3"}, two},
			`its token goes back to that of a change before the last`, "3",
		},
		"an empty key":   {[]change{one, {Token: "2"}}, `change 2 with the key "" and the token "2": it has no key`, "1"},
		"no token":       {[]change{one, {Key: "b"}}, `change 2 with the key "b" and the token "": it has no token`, "1"},
		"a long key":     {[]change{one, {Key: strings.Repeat("k", 1025), Token: "2"}}, "exceeds the limit of 1024 bytes", "1"},
		"a long token":   {[]change{one, {Key: "b", Token: strings.Repeat("2", 4097)}}, "exceeds the limit of 4096 bytes", "1"},
		"no UTF-8":       {[]change{one, {Key: "\xff", Token: "2"}}, "its key is not UTF-8", "1"},
		"no UTF-8 token": {[]change{one, {Key: "b", Token: "\xff"}}, "its token is not UTF-8", "1"},
		"a position without a token": {
			[]change{one, {Position: true}},
			"it has no token", "1",
		},
		"a position that goes back": {
			[]change{one, two, {Token: "0", Position: true}},
			"goes back to that at which the attempt began", "2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			withThreads(t, func(t *testing.T, threads int64) {
				r := newStreamRecord()
				r.token = "0"
				s := stream{
					Threads: threads,
					Changes: yields(c.changes...),
					Process: func(_ context.Context, c change) error {
						if c.Key == "slow" {
							time.Sleep(time.Second)
						}
						return nil
					},
				}
				for range 2 {
					err := attemptStream(t, t.Context(), r, s)
					items, is := errors.AsType[*work.ItemsError](err)
					slow := name == "back to an open one" && threads == 1 // then it is not open any more
					if !slow && (!is || items.Partition != "1" || !strings.Contains(err.Error(), c.want)) {
						t.Fatalf("%v, want %s", err, c.want)
					}
					if !slow {
						wantToken(t, r, c.token)
					}
					r.token = "0"
				}
			})
		})
	}
}

func TestBadStream_ASourceThatFailsIsToldWithItsPosition(t *testing.T) {
	for how, fails := range map[string]func(yield func(change, error) bool){
		"disk":           func(yield func(change, error) bool) { yield(change{}, errDisk) },
		"panic: broken":  func(func(change, error) bool) { panic("broken") },
		"ended its goro": func(func(change, error) bool) { runtime.Goexit() },
	} {
		withThreads(t, func(t *testing.T, threads int64) {
			for want, all := range map[string][]change{
				`behind change 0, at the token "7": `: nil,
				`behind change 2, at the token "9": `: {{Key: "a", Token: "8"}, {Key: "a", Token: "9"}},
			} {
				r := newStreamRecord()
				r.token = "7"
				s := stream{
					Threads: threads,
					Process: func(context.Context, change) error { return nil },
					Changes: func(context.Context, int, string) iter.Seq2[change, error] {
						return func(yield func(change, error) bool) {
							for _, c := range all {
								yield(c, nil)
							}
							fails(yield)
						}
					},
				}
				err := attemptStream(t, t.Context(), r, s)
				items, is := errors.AsType[*work.ItemsError](err)
				if !is || !strings.Contains(items.Error(), want) || !strings.Contains(items.Error(), how) {
					t.Errorf("%v, want %s and %s", err, want, how)
				}
			}
		})
	}
}

// Another attempt begins at the last token, and knows none before it.
func TestBadStream_ATokenThatGoesBackIsNotRepeated(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		for said, c := range map[string]change{
			"final items": {Key: "a", Token: "1"},
			"retry items": {Token: "3"}, // without a key
		} {
			r := newStreamRecord()
			w := work.DefineStream("sync", nil, stream{
				Threads: threads,
				Changes: yields(change{Key: "a", Token: "1"}, change{Key: "a", Token: "2"}, c),
				Process: func(context.Context, change) error { return nil },
			})
			if got := r.retry(t.Context(), w, nil); got != said {
				t.Errorf("%v: %s, want %s", c, got, said)
			}
			wantToken(t, r, "2")
		}
	})
}

// It is heard once a second, and others as fast as they come.
func TestBadStream_ASourceThatTellsOnePositionForEverIsSlowedDown(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		r := newStreamRecord()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		told, began := 0, time.Now()
		var fast time.Duration
		s := stream{
			Threads: threads,
			Process: func(context.Context, change) error { return nil },
			Changes: func(context.Context, int, string) iter.Seq2[change, error] {
				return func(yield func(change, error) bool) {
					for n := range 500 {
						if !yield(change{Token: strconv.Itoa(n/5 + 1), Position: true}, nil) {
							return
						}
					}
					fast = time.Since(began)
					for told < 10_000 && yield(change{Token: "100", Position: true}, nil) {
						told++
					}
				}
			},
		}
		if err := attemptStream(t, ctx, r, s); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if told > 70 || told < 60 || fast > 0 {
			t.Errorf("the position was heard %d times in a minute, those before in %s", told, fast)
		}
		wantToken(t, r, "100")
	})
}

// Two streams read one source, each for its own part of it: what is none of it is skipped, by each at its own token.
func TestLiveSync_TwoTasksOfOneSourceSkipWhatIsForTheOther(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src := objects(20)
		var applied [2][]int
		for i := range applied {
			s, r := src.stream(threads), newStreamRecord()
			s.Process = func(_ context.Context, c change) error {
				if c.Value%5 == 0 == (i == 0) {
					return work.Skip("it is of another intent")
				}
				src.mu.Lock()
				defer src.mu.Unlock()
				applied[i] = append(applied[i], c.Value)
				return nil
			}
			s.Rules = []work.Rule{{React: work.Park}}
			runStream(t, r, s)
			wantToken(t, r, "20")
			wantItems(t, r, [2]work.Counts{{Done: 16, Skipped: 4}, {Done: 4, Skipped: 16}}[i])
			if len(r.holds) > 0 {
				t.Errorf("what is skipped is held: %v", r.holds)
			}
		}
		if len(applied[0]) != 16 || len(applied[1]) != 4 {
			t.Errorf("applied %d", applied)
		}
	})
}

func TestBadStream_OfImpreciseTokensMayRepeatThem(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(10), newStreamRecord()
		src.every = 4
		s := src.stream(threads)
		s.Imprecise = true
		runStream(t, r, s)
		wantToken(t, r, "12")
		wantItems(t, r, work.Counts{Done: 10})
	})
}

func TestBadStream_OfImpreciseTokensThatGoBackIsToldWithItsPosition(t *testing.T) {
	five, nine := change{Key: "a", Token: "5"}, change{Key: "b", Token: "9"}
	for name, c := range map[string]struct {
		changes []change
		want    string
	}{
		"to the beginning":       {[]change{five, five, nine, nine, five}, `change 5 with the key "a" and the token "5": its token goes back to that at`},
		"to one before the last": {[]change{nine, {Key: "a", Token: "12"}, nine}, `change 3 with the key "b" and the token "9": its token goes back to that of`},
		"by a position":          {[]change{nine, {Token: "5", Position: true}}, `change 2 with the key "" and the token "5": its token goes back to that at`},
	} {
		t.Run(name, func(t *testing.T) {
			withThreads(t, func(t *testing.T, threads int64) {
				r := newStreamRecord()
				r.token = "5"
				s := stream{
					Threads:   threads,
					Imprecise: true,
					Changes:   yields(c.changes...),
					Process:   func(context.Context, change) error { return nil },
				}
				for range 2 {
					if err := attemptStream(t, t.Context(), r, s); err == nil || !strings.Contains(err.Error(), c.want) {
						t.Fatalf("%v, want %s", err, c.want)
					}
					wantToken(t, r, "5")
				}
			})
		})
	}
}

// An iterator that goes on after its batch, or whatever its context says, is told of, and what was processed counts.
func TestBadStream_ASourceThatDoesNotStopIsToldOf(t *testing.T) {
	for name, changes := range map[string]func(ctx context.Context, yield func(change, error) bool){
		"it yields after its batch": func(_ context.Context, yield func(change, error) bool) {
			for _, token := range []string{"1", "2", "3", "4"} {
				yield(change{Key: token, Token: token}, nil)
			}
		},
		"it panics": func(_ context.Context, yield func(change, error) bool) {
			_ = yield(change{Key: "1", Token: "1"}, nil) && yield(change{Key: "2", Token: "2"}, nil)
			panic("broken")
		},
		"it hangs": func(_ context.Context, yield func(change, error) bool) {
			_ = yield(change{Key: "1", Token: "1"}, nil) && yield(change{Key: "2", Token: "2"}, nil)
			time.Sleep(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withThreads(t, func(t *testing.T, threads int64) {
				r := newStreamRecord()
				err := attemptStream(t, t.Context(), r, stream{
					Threads: threads,
					Batch:   2,
					Changes: func(ctx context.Context, _ int, _ string) iter.Seq2[change, error] {
						return func(yield func(change, error) bool) { changes(ctx, yield) }
					},
					Process: func(context.Context, change) error { return nil },
				})
				if _, is := errors.AsType[*work.ItemsError](err); !is {
					t.Errorf("%v", err)
				}
				wantToken(t, r, "2")
				wantItems(t, r, work.Counts{Done: 2})
				time.Sleep(2 * time.Hour) // until the one that hangs has ended
			})
		})
	}
}

func TestBadStream_AChangeTooLargeToBeHeldStopsTheStream(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		r := newStreamRecord()
		w := work.DefineStream("sync", nil, work.Stream[int, string]{
			Threads: threads,
			Rules:   []work.Rule{{React: work.Park}},
			Changes: func(context.Context, int, string) iter.Seq2[work.Change[string], error] {
				return func(yield func(work.Change[string], error) bool) {
					yield(work.Change[string]{Key: "a", Token: "1", Value: strings.Repeat("x", work.MaxHeldBytes)}, nil)
				}
			},
			Process: func(context.Context, work.Change[string]) error { return errDisk },
		})
		a := r.attempt()
		_, err := w.Attempt(t.Context(), a, 0, work.Attempt{Stream: a})
		invalid, is := errors.AsType[*store.InvalidError](err)
		if !is || !strings.Contains(invalid.Problem, "exceed the limit of 196608") || !strings.Contains(err.Error(), `"1"`) {
			t.Errorf("%v", err)
		}
		wantToken(t, r, "")
	})
}

// Large changes are held by several moves, none of which holds more than a hold may.
func TestStream_HoldsManyLargeChanges(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		r := newStreamRecord()
		w := work.DefineStream("sync", nil, work.Stream[int, string]{
			Threads: threads,
			Rules:   []work.Rule{{React: work.Park}},
			Changes: func(context.Context, int, string) iter.Seq2[work.Change[string], error] {
				return func(yield func(work.Change[string], error) bool) {
					for _, key := range []string{"1", "2", "3", "4", "5"} {
						yield(work.Change[string]{Key: key, Token: key, Value: strings.Repeat("x", 100<<10)}, nil)
					}
				}
			},
			Process: func(context.Context, work.Change[string]) error { return errDisk },
		})
		a := r.attempt()
		if _, err := w.Attempt(t.Context(), a, 0, work.Attempt{Stream: a}); err != nil || len(r.wrong) > 0 || len(r.holds) != 5 {
			t.Errorf("%v, %q, %d holds", err, r.wrong, len(r.holds))
		}
		wantToken(t, r, "5")
	})
}

func TestStream_WithoutARecordOfStreamsIsRefused(t *testing.T) {
	w := work.DefineStream("sync", nil, objects(1).stream(1))
	_, err := w.Attempt(t.Context(), newRecord().attempt(), 0, work.Attempt{})
	if _, is := errors.AsType[*store.InvalidError](err); !is {
		t.Errorf("%v", err)
	}
}
