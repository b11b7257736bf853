package work_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/work"
)

// busy fails with the code "busy".
var busy = behaviors.Code("busy", errDisk, nil)

func TestRules_DecideByTheCodeOfAnError(t *testing.T) {
	type rules = []work.Rule
	for _, c := range []struct {
		name   string
		rules  rules
		fails  int // tries of item 5 that fail, with the code "busy"
		want   work.Counts
		took   time.Duration
		stopAt int // the rule that stops the work; -1 = none
	}{
		{"none", nil, 9, work.Counts{Done: 9, Failed: 1}, 0, -1},
		{"another code", rules{{Code: "failed", React: work.Stop}}, 9, work.Counts{Done: 9, Failed: 1}, 0, -1},
		{"the first that fits", rules{{Code: "busy"}, {React: work.Stop}}, 9, work.Counts{Done: 9, Failed: 1}, 0, -1},
		{"ignore", rules{{Code: "busy", React: work.Ignore}}, 9, work.Counts{Done: 9, Skipped: 1}, 0, -1},
		{"retry", rules{{React: work.Retry}}, 1, work.Counts{Done: 10}, time.Second, -1},
		{"retry in vain", rules{{React: work.Retry}}, 2, work.Counts{Done: 9, Failed: 1}, time.Second, -1},
		{"retry more often", rules{{React: work.Retry, Times: 4, Backoff: time.Minute}}, 4,
			work.Counts{Done: 10}, 15 * time.Minute, -1},
		{"retry at most hourly", rules{{React: work.Retry, Times: 3, Backoff: 40 * time.Minute}}, 3,
			work.Counts{Done: 10}, 160 * time.Minute, -1},
		{"retry, then ignore", rules{{Code: "busy", React: work.Retry, Times: 2}, {React: work.Ignore}}, 9,
			work.Counts{Done: 9, Skipped: 1}, 3 * time.Second, -1},
		{"retry by two rules", rules{{Code: "busy", React: work.Retry}, {React: work.Retry, Times: 2}}, 3,
			work.Counts{Done: 10}, 1*time.Second + 1*time.Second + 2*time.Second, -1},
		{"stop", rules{{Code: "else"}, {Code: "busy", React: work.Stop}}, 9, work.Counts{}, 0, 1},
		{"retry, then stop", rules{{React: work.Retry}, {React: work.Stop}}, 9, work.Counts{}, time.Second, 1},
	} {
		for _, threads := range []int64{1, 3} {
			t.Run(fmt.Sprint(c.name, " threads=", threads), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tries := 0
					began := time.Now()
					r, state, err := once(t, partition{
						Items: numbers,
						Process: func(_ context.Context, n int) error {
							if n != 5 {
								return nil
							}
							if tries++; tries <= c.fails {
								return busy
							}
							return nil
						},
						Segmentation: cut(10, 1),
						Threads:      threads,
						Rules:        c.rules,
					})
					stopped, stops := errors.AsType[*work.StopError](err)
					switch {
					case stops != (c.stopAt >= 0), err != nil && !stops, r.total() != c.want, !stops && state != work.Finished:
						t.Errorf("%+v, %v, %v", r.total(), state, err)
					case stops && (stopped.Rule != c.stopAt || stopped.Item.Item != "#6" || !errors.Is(err, errDisk)):
						t.Errorf("%v", err)
					}
					if took := time.Since(began); took != c.took {
						t.Errorf("it took %s, want %s", took, c.took)
					}
				})
			})
		}
	}
}

func TestRules_StopAtTheNthFailureOfAllWorkers(t *testing.T) {
	for _, workers := range []int{1, 9} {
		synctest.Test(t, func(t *testing.T) {
			r := newRecord()
			w := work.Define("numbers", nil, partition{
				Items: numbers,
				Process: func(context.Context, int) error {
					time.Sleep(time.Millisecond)
					return busy
				},
				Segmentation: cut(1000, 100),
				Workers:      int64(workers),
				Rules:        []work.Rule{{React: work.Stop, Times: 25}},
			})
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					_, err := w.Attempt(t.Context(), r.attempt(), 0, work.Attempt{})
					if stopped, ok := errors.AsType[*work.StopError](err); !ok || stopped.Rule != 0 {
						t.Errorf("got %v", err)
					}
				})
			}
			all.Wait()
			if passed := int64(len(r.permits)); passed != 24 || r.total().Failed > passed || len(r.wrong) > 0 {
				t.Errorf("%d failures passed, %+v are counted, %q", passed, r.total(), r.wrong)
			}
		})
	}
}

func TestPermit_CountsAnItemOnceWhateverBecomesOfItsBucket(t *testing.T) {
	for _, key := range []func(int) string{nil, func(n int) string { return fmt.Sprint("row ", n) }} {
		r := newRecord()
		broken := true
		p := partition{
			Items: numbers,
			Process: func(ctx context.Context, n int) error {
				for range 2 {
					if err := work.Permit(ctx, "deletes"); err != nil {
						return err
					}
				}
				if n == 7 && broken {
					broken = false
					return busy
				}
				return nil
			},
			Key:          key,
			Segmentation: cut(10, 2),
			Thresholds:   []work.Threshold{{Counter: "deletes", Limit: 10}, {Counter: "creates"}},
			Rules:        []work.Rule{{React: work.Stop}},
		}
		if _, err := attemptOn(t, r, p); err == nil {
			t.Fatal("the work did not stop")
		}
		state, err := attemptOn(t, r, p)
		if state != work.Finished || err != nil || r.total().Done != 10 || len(r.permits) != 10 {
			t.Errorf("%v, %v, %+v, %d permits", state, err, r.total(), len(r.permits))
		}
		items := map[uint64]bool{}
		for ask := range r.permits {
			items[ask.Item] = true
		}
		if len(items) != 10 {
			t.Errorf("%d items of 10 differ", len(items))
		}
	}
}

func TestPermit_TripsBehindItsLimitAndPermitsNoOther(t *testing.T) {
	for _, c := range []struct {
		limit   int64
		workers int
		threads int64
	}{{0, 1, 1}, {9, 1, 1}, {9, 1, 7}, {9, 9, 1}, {9, 9, 7}} {
		t.Run(fmt.Sprintf("limit=%d workers=%d threads=%d", c.limit, c.workers, c.threads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecord()
				var mu sync.Mutex
				applied := map[int]bool{}
				w := work.Define("numbers", nil, partition{
					Items: numbers,
					Process: func(ctx context.Context, n int) error {
						time.Sleep(time.Millisecond)
						if err := work.Permit(ctx, "creates"); err != nil {
							return fmt.Errorf("creating %d: %w", n, err)
						}
						mu.Lock()
						defer mu.Unlock()
						applied[n] = true
						return nil
					},
					Segmentation: cut(60, 12),
					Workers:      int64(c.workers),
					Threads:      c.threads,
					Thresholds:   []work.Threshold{{Counter: "creates", Limit: c.limit}},
				})
				for range 2 { // resumed without a reset it trips again
					var all sync.WaitGroup
					for range c.workers {
						all.Go(func() {
							_, err := w.Attempt(t.Context(), r.attempt(), 0, work.Attempt{})
							trip, ok := errors.AsType[*work.ThresholdError](err)
							if !ok || trip.Counter != "creates" || trip.Limit != c.limit || trip.Partition != "1" {
								t.Errorf("got %v", err)
							}
						})
					}
					all.Wait()
					if int64(len(applied)) != c.limit {
						t.Errorf("%d items are applied, want %d", len(applied), c.limit)
					}
				}
				if len(r.wrong) > 0 {
					t.Errorf("%q", r.wrong)
				}
			})
		})
	}
}

// Think, then do: nothing is applied, since the work ends in its first partition.
func TestPermit_OfASimulationEndsTheWorkBeforeAnythingIsApplied(t *testing.T) {
	applied := 0
	of := func(mode work.Mode) partition {
		return partition{
			Mode:  mode,
			Items: numbers,
			Process: func(ctx context.Context, _ int) error {
				if err := work.Permit(ctx, "creates"); err != nil {
					return err
				}
				if is, _ := work.Run(ctx); is.Mode == work.Full {
					applied++
				}
				return nil
			},
			Segmentation: cut(60, 6),
			Thresholds:   []work.Threshold{{Counter: "creates", Limit: 30}},
		}
	}
	w := work.Define("numbers", nil, of(work.Simulate), of(work.Full))
	_, err := w.Attempt(t.Context(), newRecord().attempt(), 0, work.Attempt{})
	if _, ok := errors.AsType[*work.ThresholdError](err); !ok || applied != 0 {
		t.Errorf("%d applied: %v", applied, err)
	}
}

func TestPermit_ThatFailsEndsTheAttemptThoughTheItemIgnoresIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		counter string
		fails   error
		want    string
	}{
		{"trip", "none", nil, "counter none of partition 1 has reached its limit of 0"},
		{"unknown", "others", nil, `counter: "others", which is no threshold of partition 1`},
		{"ledger", "none", errDisk, "permit of counter none: no disk"},
	} {
		r := newRecord()
		r.failAsk = c.fails
		_, err := attemptOn(t, r, partition{
			Items: numbers,
			Process: func(ctx context.Context, n int) error {
				if n == 5 {
					_ = work.Permit(ctx, c.counter)
				}
				return nil
			},
			Segmentation: cut(10, 1),
			Thresholds:   []work.Threshold{{Counter: "none"}},
			Rules:        []work.Rule{{React: work.Ignore}},
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || r.total() != (work.Counts{}) || !r.reports[0].Returned {
			t.Errorf("%s: got %v, %+v", c.name, err, r.reports)
		}
	}
}

func TestAttempt_KeepsTheOrderOfAKeyWhileAnItemIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		last := map[int]int{}
		r, state, err := once(t, partition{
			Items: numbers,
			Process: func(_ context.Context, n int) error {
				mu.Lock()
				defer mu.Unlock()
				if last[n%3] != 0 && n > last[n%3]+3 {
					t.Errorf("item %d follows item %d", n, last[n%3])
				}
				if n != last[n%3] && n%4 == 0 {
					last[n%3] = n
					return busy
				}
				last[n%3] = n
				return nil
			},
			Key:          func(n int) string { return fmt.Sprint(n % 3) },
			Segmentation: cut(100, 1),
			Threads:      8,
			Rules:        []work.Rule{{React: work.Retry}},
		})
		if state != work.Finished || err != nil || r.total().Done != 100 {
			t.Errorf("%v, %v, %+v", state, err, r.total())
		}
	})
}
