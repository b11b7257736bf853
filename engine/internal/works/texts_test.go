package works_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/internal/wire"
	fold "taskledger/projection/works"
	"taskledger/task"
)

// forget gives up the entries so far, of a test that makes many.
func (w *world) forget() { w.entries, w.told = nil, nil }

func TestErrors_OfARunBeyondTheirTextsAreCountedAlone(t *testing.T) {
	t.Parallel()
	const each = events.MaxBucketErrorBytes
	w := inWork(t, 20_000, 1, task.Policy{})
	text := strings.Repeat("m", each/events.MaxBucketErrors-2)
	errs := make([]events.ItemError, events.MaxBucketErrors)
	for i := range errs {
		errs[i] = events.ItemError{Item: "i", Code: "c", Message: text}
	}
	var encoded wire.Writer
	events.EncodeItemErrors(&encoded, errs)
	bucket, told := uint64(1), int64(0)
	end := func() (texts int) {
		w.move(parent, works.Bucket{
			Ended:  bucket,
			Failed: 30,
			Errors: encoded.B,
			Want:   true,
		})
		bucket++
		b := w.told[len(w.told)-1].Body.(*events.BucketsMoved)
		for _, e := range b.Errors {
			told += int64(len(e.Item) + len(e.Code) + len(e.Message))
		}
		w.forget()
		return len(b.Errors)
	}
	size := fold.TextBytes(errs)
	for told+size <= fold.MaxErrorBytes {
		if end() != len(errs) {
			t.Fatalf("a bucket keeps its errors for itself when the run has told %d bytes of %d", told, fold.MaxErrorBytes)
		}
	}
	for range 3 {
		if n := end(); n != 0 {
			t.Errorf("%d errors are told beyond %d bytes", n, fold.MaxErrorBytes)
		}
	}
	if told > fold.MaxErrorBytes || told+size <= fold.MaxErrorBytes {
		t.Errorf("the run tells %d bytes, want as many buckets of %d as fit into %d", told, size, fold.MaxErrorBytes)
	}
	r := w.report()
	if r.Errors.Bytes != told || r.Errors.Limit != fold.MaxErrorBytes || r.Items.Failed != 30*(bucket-1) {
		t.Errorf("%+v, %d failed, want %d bytes and %d failed", r.Errors, r.Items.Failed, told, 30*(bucket-1))
	}
	w.complete(parent, command.Failed, func(c *command.Complete) { c.ByPolicy = false })
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetAll)})
	if r := w.report(); r.Errors.Bytes != 0 {
		t.Errorf("after a reset the run has told %d bytes", r.Errors.Bytes)
	}
}

// A run of failed buckets that are too many ranges takes the span between the first and the last, each bucket once.
func TestRerun_BeyondTheRangesThatAreRememberedTakesTheSpan(t *testing.T) {
	t.Parallel()
	const (
		first = 7
		last  = first + 2*fold.MaxFailedRanges // one range more than are remembered
	)
	w := inWork(t, last+9, 1, task.Policy{})
	for bucket := uint64(1); bucket <= last+9; bucket++ {
		c := works.Bucket{Ended: bucket, Done: 2, Want: true}
		if bucket >= first && bucket <= last && bucket%2 == 1 {
			c.Failed = 1
		}
		w.move(parent, c)
		w.forget()
	}
	w.complete(parent, command.Succeeded)
	if !w.show().Parts[0].Spanned {
		t.Error("it does not say that buckets between have no failed items")
	}
	w.must(&works.Rerun{Task: string(parent)})
	w.start(parent, "n-1")
	w.plan("5f", part("all", last+9, 1))
	w.begin(1)
	want := uint64(first)
	for m := w.take(parent); works.State(m.State) == works.Go; m = w.end(parent, m.Bucket) {
		if m.Bucket != want {
			t.Fatalf("bucket %d is run again, want %d", m.Bucket, want)
		}
		want++
		w.forget()
	}
	if want != last+1 {
		t.Errorf("the last bucket that is run again is %d, want %d", want-1, last)
	}
}

// A work that has more permits than it remembers counts the item of a bucket that is processed again a second time,
// and says so.
func TestPermits_BeyondThoseThatAreRememberedAreUncertain(t *testing.T) {
	t.Parallel()
	w := inWork(t, 3, 2, task.Policy{}, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "deleted", Limit: fold.MaxPermits + 10}}
	})
	items := make([]uint64, 100)
	for n := 0; n < fold.MaxPermits; n += len(items) {
		for i := range items {
			items[i] = uint64(n + i)
		}
		w.permit(parent, "deleted", items...)
		w.forget()
	}
	again := func(want uint64) {
		t.Helper()
		if m := w.permit(worker(2), "deleted", 1<<60); m.Granted[0] != 1 {
			t.Fatalf("%+v", m)
		}
		if r := w.report(); r.Permits.Remembered != fold.MaxPermits || r.Permits.Uncertain != want {
			t.Errorf("%+v, want %d remembered and %d uncertain", r.Permits, fold.MaxPermits, want)
		}
	}
	again(1)
	w.lose("n-2")
	w.now += 60_000
	w.start(worker(2), "n-3")
	w.join(worker(2))
	if m := w.take(worker(2)); m.Bucket != 2 {
		t.Fatalf("%+v", m)
	}
	again(2)
	if p, _ := w.work().Part(); p.Counters[0] != fold.MaxPermits+2 {
		t.Errorf("%d are counted, want %d", p.Counters[0], fold.MaxPermits+2)
	}
	defer func() {
		w.complete(parent, command.Released)
		w.complete(worker(2), command.Released)
		w.must(&works.Reset{Task: string(parent), What: int64(events.ResetThresholds)})
		if r := w.report(); r.Permits.Remembered != fold.MaxPermits || r.Permits.Uncertain != 2 {
			t.Errorf("after a reset of thresholds %+v, want the permits as before", r.Permits)
		}
		w.must(&works.Reset{Task: string(parent), What: int64(events.ResetAll)})
		if r := w.report(); r.Permits.Remembered+r.Permits.Uncertain != 0 {
			t.Errorf("after a reset of the run %+v", r.Permits)
		}
	}()
	if m := w.permit(parent, "deleted", 5); m.Granted[0] != 1 {
		t.Errorf("an item that is remembered: %+v", m)
	}
	if p, _ := w.work().Part(); p.Counters[0] != fold.MaxPermits+2 {
		t.Errorf("%d are counted after an item that is remembered, want as before", p.Counters[0])
	}
}
