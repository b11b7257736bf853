package work_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"taskledger/behaviors"
	"taskledger/store"
	"taskledger/work"
	"taskledger/work/segmentation"
)

var errDisk = errors.New("no disk")

type partition = work.Partition[int, int]

// numbers yields the numbers of a bucket of a numeric partition. The parameters are added to each.
func numbers(_ context.Context, params int, b work.Bucket) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for n := b.From; n < b.To; n++ {
			if !yield(int(n)+params, nil) {
				return
			}
		}
	}
}

func cut(items, buckets int64) segmentation.Plan {
	return segmentation.Plan{Kind: segmentation.Numeric, To: items, Buckets: buckets}
}

func nothing(context.Context, int) error { return nil }

// once makes one attempt on a record of its own.
func once(t *testing.T, p partition) (*record, work.State, error) {
	t.Helper()
	r := newRecord()
	state, err := attemptOn(t, r, p)
	return r, state, err
}

func attemptOn(t *testing.T, r *record, p partition) (work.State, error) {
	t.Helper()
	w := work.Define("numbers", nil, p)
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	state, err := w.Attempt(t.Context(), r.attempt(), 0, work.Attempt{Number: 3})
	if len(r.wrong) > 0 {
		t.Errorf("%q", r.wrong)
	}
	return state, err
}

// crew runs a work to its end with several workers, which try again a second later when they have to wait.
func crew(t *testing.T, r *record, w *work.Work[int, int], workers int) {
	t.Helper()
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				state, err := w.Attempt(t.Context(), r.attempt(), 0, work.Attempt{})
				if err != nil || state == work.Finished {
					if err != nil {
						t.Error(err)
					}
					return
				}
				time.Sleep(time.Second)
			}
		})
	}
	all.Wait()
}

// All 16 combinations of one or many partitions, buckets, workers and threads.
func TestAttempt_ProcessesEachItemOnceInEveryCombination(t *testing.T) {
	for c := range 16 {
		pick := func(bit, many int) int { return 1 + c>>bit&1*(many-1) }
		partitions, buckets, workers, threads := pick(0, 3), pick(1, 7), pick(2, 4), pick(3, 5)
		name := fmt.Sprintf("partitions=%d buckets=%d workers=%d threads=%d", partitions, buckets, workers, threads)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const items = 50
				var mu sync.Mutex
				var seen []int
				var all []partition
				for place := range partitions {
					all = append(all, partition{
						Items: numbers,
						Process: func(ctx context.Context, n int) error {
							time.Sleep(time.Millisecond)
							mu.Lock()
							defer mu.Unlock()
							seen = append(seen, place*items+n)
							return nil
						},
						Segmentation: cut(items, int64(buckets)),
						Workers:      int64(workers),
						Threads:      int64(threads),
					})
				}
				r := newRecord()
				crew(t, r, work.Define("numbers", nil, all...), workers)
				for i := range partitions { // they follow one another
					slices.Sort(seen[i*items : (i+1)*items])
				}
				for i, n := range seen {
					if i != n {
						t.Fatalf("processed %d", seen)
					}
				}
				if got := r.total(); got.Done != int64(partitions*items) || len(r.reports) != partitions*buckets {
					t.Errorf("%d reports of %+v", len(r.reports), got)
				}
				if len(seen) != partitions*items || len(r.beginnings) != partitions || len(r.wrong) > 0 {
					t.Errorf("%d items, begun %+v, %q", len(seen), r.beginnings, r.wrong)
				}
			})
		})
	}
}

func TestAttempt_TellsDoneFailedAndSkipped(t *testing.T) {
	r, state, err := once(t, partition{
		Items: numbers,
		Process: func(_ context.Context, n int) error {
			switch n % 5 {
			case 0:
				return fmt.Errorf("row %d: %w", n, work.Skip("nothing changed"))
			case 1:
				return behaviors.Code("busy", errDisk, nil)
			case 2:
				return errDisk
			}
			return nil
		},
		Segmentation: cut(10, 2),
	})
	if state != work.Finished || err != nil {
		t.Fatal(state, err)
	}
	for i, report := range r.reports {
		want := work.Report{
			Bucket: int64(i) + 1,
			Items:  work.Counts{Done: 2, Failed: 2, Skipped: 1},
			Errors: []work.ItemError{
				{Item: "#2", Code: "busy", Message: "no disk"},
				{Item: "#3", Code: "failed", Message: "no disk"},
			},
		}
		if fmt.Sprint(report) != fmt.Sprint(want) {
			t.Errorf("report %+v, want %+v", report, want)
		}
	}
}

func TestAttempt_KeepsTheFirstErrorsOfABucketAndCutsTexts(t *testing.T) {
	for _, c := range []struct {
		name, message string
		key           string
		kept          int
	}{
		{"short", "no disk", "", work.MaxErrors},
		{"long", strings.Repeat("é", 4000), strings.Repeat("k", 300), 6},
		{"no UTF-8", "\xff\xfe", "\xff", work.MaxErrors},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, err := once(t, partition{
				Items:        numbers,
				Process:      func(context.Context, int) error { return errors.New(c.message) },
				Key:          func(int) string { return c.key },
				Segmentation: cut(1000, 1),
			})
			if err != nil {
				t.Fatal(err)
			}
			report, bytes := r.reports[0], 0
			for _, e := range report.Errors {
				bytes += len(e.Item) + len(e.Code) + len(e.Message)
				if len(e.Message) > work.MaxMessageBytes || len(e.Item) > work.MaxItemBytes || !utf8.ValidString(e.Item+e.Message) {
					t.Errorf("error %q", e)
				}
			}
			if report.Items.Failed != 1000 || len(report.Errors) != c.kept || bytes > work.MaxErrorBytes {
				t.Errorf("%+v, %d errors of %d bytes are kept, want %d", report.Items, len(report.Errors), bytes, c.kept)
			}
		})
	}
}

func TestAttempt_MakesAPanicAFailureOfItsItem(t *testing.T) {
	for _, threads := range []int64{1, 3} {
		r, state, err := once(t, partition{
			Items: numbers,
			Process: func(_ context.Context, n int) error {
				if n == 4 {
					panic("broken")
				}
				return nil
			},
			Segmentation: cut(10, 1),
			Threads:      threads,
		})
		if state != work.Finished || err != nil {
			t.Fatal(state, err)
		}
		e := r.reports[0].Errors[0]
		if r.total() != (work.Counts{Done: 9, Failed: 1}) || e.Code != work.CodePanic || e.Item != "#5" ||
			!strings.Contains(e.Message, "broken") || !strings.Contains(e.Message, ".go:") {
			t.Errorf("%+v, %+v", r.total(), e)
		}
	}
}

// What a bucket tells of its errors is bounded, and the frames of the engine would leave room for three panics.
func TestAttempt_APanicTellsTheFramesOfTheFunctionAlone(t *testing.T) {
	var nobody *work.Info
	for name, fails := range map[string]func(){
		"broken":      func() { panic("broken") },
		"nil pointer": func() { nobody.Attempt++ },
	} {
		r, _, err := once(t, partition{
			Items:        numbers,
			Process:      func(context.Context, int) error { fails(); return nil },
			Segmentation: cut(10, 1),
		})
		if err != nil || len(r.reports[0].Errors) != 10 {
			t.Fatal(name, err)
		}
		lines := strings.Split(r.reports[0].Errors[0].Message, "\n")
		if len(lines) != 5 || !strings.Contains(lines[0], name) ||
			!strings.HasPrefix(lines[1], "taskledger/work_test.TestAttempt_APanicTells") ||
			!strings.Contains(lines[2], "attempt_test.go:") || strings.Contains(lines[2], "+0x") ||
			!strings.Contains(lines[4], "attempt_test.go:") {
			t.Errorf("%s: %q", name, lines)
		}
	}
}

func TestAttempt_NeverProcessesInADryRun(t *testing.T) {
	r, state, err := once(t, partition{
		Mode:         work.DryRun,
		Items:        numbers,
		Segmentation: cut(10, 3),
	})
	if state != work.Finished || err != nil || r.total() != (work.Counts{Done: 10}) {
		t.Errorf("%v, %v, %+v", state, err, r.total())
	}
}

func TestRun_TellsWhatAFunctionIsCalledFor(t *testing.T) {
	whole := work.Info{Run: 7, Started: started, Mode: work.Simulate, Partition: "scan", Attempt: 3}
	check := func(ctx context.Context, in string, bucket work.Bucket) {
		want := whole
		want.Bucket = bucket
		if got, ok := work.Run(ctx); !ok || got != want {
			t.Errorf("%s: got %+v, %t, want %+v", in, got, ok, want)
		}
	}
	second, _ := cut(10, 2).Bucket(2)
	if _, _, err := once(t, partition{
		ID:   "scan",
		Mode: work.Simulate,
		Items: func(ctx context.Context, params int, b work.Bucket) iter.Seq2[int, error] {
			check(ctx, "items", b)
			return numbers(ctx, params, b)
		},
		Count: func(ctx context.Context, _ int) (int64, error) {
			check(ctx, "count", work.Bucket{})
			return 10, nil
		},
		Process: func(ctx context.Context, n int) error {
			if n >= 5 {
				check(context.WithValue(ctx, t, "of its own"), "process", second)
			}
			return nil
		},
		Segmentation: cut(10, 2),
	}); err != nil {
		t.Fatal(err)
	}
	if _, ok := work.Run(t.Context()); ok {
		t.Error("a context of nothing tells of a run")
	}
}

func TestAttempt_BeginsAPartitionWithItsCount(t *testing.T) {
	count := func(n int64, err error) func(context.Context, int) (int64, error) {
		return func(context.Context, int) (int64, error) { return n, err }
	}
	for _, c := range []struct {
		name  string
		count func(context.Context, int) (int64, error)
		want  work.Beginning
	}{
		{"none", nil, work.Beginning{}},
		{"zero", count(0, nil), work.Beginning{Counted: true}},
		{"some", count(math.MaxInt64, nil), work.Beginning{Counted: true, Expected: math.MaxInt64}},
		{"negative", count(-1, nil), work.Beginning{}},
		{"error", count(5, errDisk), work.Beginning{}},
		{"panic", func(context.Context, int) (int64, error) { panic("broken") }, work.Beginning{}},
	} {
		r, state, err := once(t, partition{
			Items:        numbers,
			Process:      nothing,
			Count:        c.count,
			Segmentation: cut(1, 1),
		})
		if state != work.Finished || err != nil || len(r.beginnings) != 1 || r.beginnings[0] != c.want {
			t.Errorf("%s: %v, %v, %+v", c.name, state, err, r.beginnings)
		}
	}
}

func TestAttempt_LeavesACountBehindThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan bool)
		ctx, suspend := context.WithCancelCause(t.Context())
		r := newRecord()
		w := work.Define("numbers", nil, partition{
			Items:   numbers,
			Process: nothing,
			Count: func(context.Context, int) (int64, error) {
				suspend(errDisk)
				<-release
				return 0, nil
			},
			Segmentation: cut(1, 1),
		})
		_, err := w.Attempt(ctx, r.attempt(), 0, work.Attempt{Grace: time.Minute})
		if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "the count of partition 1 does not return") {
			t.Errorf("got %v", err)
		}
		if got := work.Abandoned(); !slices.Equal(got, []string{"the count of partition 1"}) {
			t.Errorf("%q are left behind", got)
		}
		close(release)
		synctest.Wait()
		if got := work.Abandoned(); len(got) > 0 {
			t.Errorf("%q are left behind after they returned", got)
		}
	})
}

func TestAttempt_GivesTheBucketBackWhoseItemsCannotBeHad(t *testing.T) {
	failing := func(fail func(yield func(int, error) bool)) func(context.Context, int, work.Bucket) iter.Seq2[int, error] {
		return func(_ context.Context, _ int, b work.Bucket) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				if b.Number < 2 || yield(1, nil) {
					fail(yield)
				}
			}
		}
	}
	for _, c := range []struct {
		name, want string
		items      func(context.Context, int, work.Bucket) iter.Seq2[int, error]
		key        func(int) string
	}{
		{"error", "no disk", failing(func(yield func(int, error) bool) { yield(0, errDisk) }), nil},
		{"panic", "panic: broken", failing(func(func(int, error) bool) { panic("broken") }), nil},
		{"on after the stop", "it yielded after it was told to stop", failing(func(yield func(int, error) bool) {
			for {
				yield(0, errDisk)
			}
		}), nil},
		{"nil", "nil pointer", func(context.Context, int, work.Bucket) iter.Seq2[int, error] { return nil }, nil},
		{"key", "the function of keys: panic: broken", numbers, func(int) string { panic("broken") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, err := once(t, partition{
				Items:        c.items,
				Key:          c.key,
				Process:      nothing,
				Segmentation: cut(10, 2),
			})
			failure, ok := errors.AsType[*work.ItemsError](err)
			if !ok || failure.Bucket.Number != 1 || failure.Partition != "1" || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "bucket 1 ([0, 5)) of partition 1") {
				t.Fatalf("got %v", err)
			}
			report := r.reports[len(r.reports)-1]
			if !report.Returned || report.Cause != err || !report.Last || report.Bucket != 1 {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestAttempt_LeavesAnIteratorBehindThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan bool)
		ctx, suspend := context.WithCancelCause(t.Context())
		r := newRecord()
		w := work.Define("numbers", nil, partition{
			Items: func(context.Context, int, work.Bucket) iter.Seq2[int, error] {
				return func(func(int, error) bool) { <-release }
			},
			Process: nothing,
		})
		go func() {
			time.Sleep(time.Hour)
			suspend(errDisk)
		}()
		var log bytes.Buffer
		_, err := w.Attempt(ctx, r.attempt(), 0, work.Attempt{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if _, items := errors.AsType[*work.ItemsError](err); !errors.Is(err, errDisk) || items ||
			!strings.Contains(err.Error(), "the iterator of bucket 1 of partition 1 does not return") {
			t.Errorf("got %v", err)
		}
		if !strings.Contains(log.String(), "does not return") {
			t.Errorf("logged %s", log.String())
		}
		if got := work.Abandoned(); !slices.Equal(got, []string{"the iterator of bucket 1 of partition 1"}) {
			t.Errorf("%q are left behind", got)
		}
		if len(r.reports) != 1 || !r.reports[0].Returned || len(r.wrong) > 0 {
			t.Errorf("%+v, %q", r.reports, r.wrong)
		}
		close(release)
	})
}

// Suspended in mid-bucket and resumed, twice: the items add up, and none is lost.
func TestAttempt_GivesItsBucketBackWhenItIsSuspended(t *testing.T) {
	for _, threads := range []int64{1, 4} {
		r := newRecord()
		processed := map[int]int{}
		var mu sync.Mutex
		var suspend context.CancelCauseFunc
		left := 2
		w := work.Define("numbers", nil, partition{
			Items: numbers,
			Process: func(ctx context.Context, n int) error {
				mu.Lock()
				defer mu.Unlock()
				if left > 0 && n == 15+20*(2-left) {
					left--
					suspend(errDisk)
					return ctx.Err()
				}
				processed[n]++
				return nil
			},
			Segmentation: cut(50, 5),
			Threads:      threads,
		})
		for attempts := 0; ; attempts++ {
			var ctx context.Context
			ctx, suspend = context.WithCancelCause(t.Context())
			state, err := w.Attempt(ctx, r.attempt(), 0, work.Attempt{})
			suspend(nil)
			if err == nil && state == work.Finished && attempts == 2 {
				break
			}
			if !errors.Is(err, errDisk) {
				t.Fatalf("attempt %d: %v, %v", attempts, state, err)
			}
			if last := r.reports[len(r.reports)-1]; !last.Returned || !last.Last || !errors.Is(last.Cause, errDisk) {
				t.Fatalf("the last report is %+v", last)
			}
		}
		if got := r.total(); got != (work.Counts{Done: 50}) || len(processed) != 50 || len(r.wrong) > 0 {
			t.Errorf("%+v, %d processed, %q", got, len(processed), r.wrong)
		}
	}
}

func TestAttempt_ReportsABucketThatIsDoneThoughItIsSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, suspend := context.WithCancelCause(t.Context())
		r := newRecord()
		w := work.Define("numbers", nil, partition{
			Items: numbers,
			Process: func(_ context.Context, n int) error {
				if time.Sleep(time.Duration(n) * time.Second); n == 4 {
					suspend(errDisk)
				}
				return nil
			},
			Segmentation: cut(10, 2),
			Threads:      2,
		})
		if _, err := w.Attempt(ctx, r.attempt(), 0, work.Attempt{}); !errors.Is(err, errDisk) {
			t.Errorf("got %v", err)
		}
		if len(r.reports) != 1 || !r.reports[0].Last || r.reports[0].Returned || r.total().Done != 5 || len(r.wrong) > 0 {
			t.Errorf("%+v, %q", r.reports, r.wrong)
		}
	})
}

// The last item is the only one left, so its bucket would be done if its error counted as a failure.
func TestAttempt_CountsNoErrorOfAnItemThatWasInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, suspend := context.WithCancelCause(t.Context())
		r := newRecord()
		w := work.Define("numbers", nil, partition{
			Items: numbers,
			Process: func(ctx context.Context, n int) error {
				if n < 4 {
					return nil
				}
				time.Sleep(time.Second)
				suspend(errDisk)
				return ctx.Err()
			},
			Segmentation: cut(10, 2),
			Threads:      2,
		})
		if _, err := w.Attempt(ctx, r.attempt(), 0, work.Attempt{}); !errors.Is(err, errDisk) {
			t.Errorf("got %v", err)
		}
		if len(r.reports) != 1 || !r.reports[0].Returned || len(r.wrong) > 0 {
			t.Errorf("%+v, %q", r.reports, r.wrong)
		}
	})
}

func TestAttempt_EndsWithTheErrorOfItsLedger(t *testing.T) {
	r := newRecord()
	r.failNext = errDisk
	_, err := attemptOn(t, r, partition{
		Items:        numbers,
		Process:      nothing,
		Segmentation: cut(1, 1),
	})
	if !errors.Is(err, errDisk) || err.Error() != "asking for a bucket of work numbers: no disk" {
		t.Errorf("got %v", err)
	}
}

func TestAttempt_FollowsTheRecordedPlanAndSaysThatItIsAnotherOne(t *testing.T) {
	r := newRecord()
	recorded := work.Define("numbers", nil, partition{
		Items:        numbers,
		Process:      nothing,
		Mode:         work.Simulate,
		Segmentation: cut(10, 5),
	}).Planned()
	r.plan = &recorded
	var log bytes.Buffer
	w := work.Define("numbers", nil, partition{
		Items: numbers,
		Process: func(ctx context.Context, _ int) error {
			if is, _ := work.Run(ctx); is.Mode != work.Simulate {
				t.Errorf("an item is processed with the mode %s", is.Mode)
			}
			return nil
		},
		Segmentation: cut(1000, 2),
	})
	state, err := w.Attempt(t.Context(), r.attempt(), 0, work.Attempt{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if state != work.Finished || err != nil || len(r.reports) != 5 || r.total().Done != 10 {
		t.Errorf("%v, %v, %+v", state, err, r.reports)
	}
	here := w.Planned().Definition
	if said := log.String(); !strings.Contains(said, recorded.Definition) || !strings.Contains(said, here) {
		t.Errorf("it said %q", said)
	}
}

func TestAttempt_RefusesAPartitionThatItsNodeDoesNotKnow(t *testing.T) {
	define := func(id string) *work.Work[int, int] {
		return work.Define("numbers", nil, partition{
			ID:           id,
			Items:        numbers,
			Process:      nothing,
			Segmentation: cut(10, 5),
		})
	}
	r := newRecord()
	recorded := define("first").Planned()
	r.plan, r.begun = &recorded, true
	_, err := define("second").Attempt(t.Context(), r.attempt(), 0, work.Attempt{})
	if err == nil || !strings.Contains(err.Error(), `has a partition "first"`) {
		t.Errorf("got %v", err)
	}
	if len(r.reports) != 1 || !r.reports[0].Returned {
		t.Errorf("%+v", r.reports)
	}
}

func TestPermit_OutsideOfAnItemIsRefused(t *testing.T) {
	err := work.Permit(t.Context(), "deletes")
	if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Field != "permit" {
		t.Errorf("got %v", err)
	}
}
