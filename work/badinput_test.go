package work_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/work"
)

// fetched makes one attempt with an iterator of each bucket, and ends the attempt after an hour.
func fetched(t *testing.T, items func(ctx context.Context, yield func(int, error) bool)) (*record, error) {
	t.Helper()
	r := newRecord()
	w := work.Define("numbers", nil, partition{
		Items: func(ctx context.Context, _ int, _ work.Bucket) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) { items(ctx, yield) }
		},
		Process: func(context.Context, int) error {
			time.Sleep(time.Minute)
			return nil
		},
		Segmentation: cut(10, 2),
	})
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errSuspended)
	defer cancel()
	_, err := w.Attempt(ctx, r.attempt(), 0, work.Attempt{})
	return r, err
}

var errSuspended = errors.New("it is suspended")

func TestBadIterator_IsReportedAndItsBucketIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		items func(ctx context.Context, yield func(int, error) bool)
		want  string
	}{
		"errs":   {func(_ context.Context, yield func(int, error) bool) { yield(0, errDisk) }, "no disk"},
		"panics": {func(context.Context, func(int, error) bool) { panic("broken") }, "panic: broken"},
		"errs behind items": {func(_ context.Context, yield func(int, error) bool) {
			_ = yield(1, nil) && yield(2, nil) && yield(0, errDisk)
		}, "no disk"},
		"panics behind items": {func(_ context.Context, yield func(int, error) bool) {
			yield(1, nil)
			panic("broken")
		}, "panic: broken"},
		"yields again after it was stopped": {func(_ context.Context, yield func(int, error) bool) {
			yield(0, errDisk)
			yield(1, nil)
		}, "it yielded after it was told to stop"},
		"yields twice at once": {func(_ context.Context, yield func(int, error) bool) {
			for range 20 {
				go yield(1, nil)
			}
			time.Sleep(time.Second)
		}, "yielded"},
		"yields after it returned": {func(_ context.Context, yield func(int, error) bool) {
			yield(1, nil)
			go func() {
				time.Sleep(time.Second)
				yield(2, nil)
			}()
		}, "yielded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := fetched(t, c.items)
				failure, is := errors.AsType[*work.ItemsError](err)
				if !is || failure.Bucket.Number != 1 || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v, want that the items of bucket 1 cannot be had: %s", err, c.want)
				}
				if last := r.reports[len(r.reports)-1]; !last.Returned || !last.Last || last.Bucket != 1 {
					t.Errorf("the last report is %+v", last)
				}
				if len(r.wrong) > 0 || len(r.done) > 0 {
					t.Errorf("%q, %d buckets are done", r.wrong, len(r.done))
				}
			})
		})
	}
}

func TestBadIterator_ThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan bool)
		begun := time.Now()
		r, err := fetched(t, func(context.Context, func(int, error) bool) { <-release })
		if !errors.Is(err, errSuspended) || !strings.Contains(err.Error(), "does not return") {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took > time.Hour+time.Minute {
			t.Errorf("the attempt ends after %s, want it soon after its context", took)
		}
		if last := r.reports[len(r.reports)-1]; !last.Returned || last.Bucket != 1 {
			t.Errorf("the last report is %+v", last)
		}
		close(release)
	})
}

func TestBadCount_IsLoggedAndTheNumberUnknown(t *testing.T) {
	for name, count := range map[string]func(context.Context, int) (int64, error){
		"errs":        func(context.Context, int) (int64, error) { return 5, errDisk },
		"panics":      func(context.Context, int) (int64, error) { panic("no disk") },
		"is negative": func(context.Context, int) (int64, error) { return -1, nil },
	} {
		r := newRecord()
		var log bytes.Buffer
		w := work.Define("numbers", nil, partition{
			Items:        numbers,
			Process:      nothing,
			Count:        count,
			Segmentation: cut(10, 2),
		})
		state, err := w.Attempt(t.Context(), r.attempt(), 0, work.Attempt{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if state != work.Finished || err != nil || r.total().Done != 10 || r.beginnings[0].Counted {
			t.Errorf("%s: %v, %v, %+v, begun with %+v", name, state, err, r.total(), r.beginnings)
		}
		if said := log.String(); !strings.Contains(said, "count") || name != "is negative" && !strings.Contains(said, "no disk") {
			t.Errorf("%s: it is logged as %q", name, said)
		}
	}
}
