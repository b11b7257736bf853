package works_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// Each definition is refused by Submit, which names field and limit, and there is no task.
func TestSubmit_RefusesABadDefinitionBeforeThereIsATask(t *testing.T) {
	t.Parallel()
	type partition = work.Partition[struct{}, int64]
	of := func(plan segmentation.Plan) func(p *partition) {
		return func(p *partition) { p.Segmentation = plan }
	}
	texts := func(alphabet string) func(p *partition) {
		return of(segmentation.Plan{Kind: segmentation.Interval, Alphabets: []string{alphabet}})
	}
	numbers := func(from, to, size, buckets int64) func(p *partition) {
		return of(segmentation.Plan{Kind: segmentation.Numeric, From: from, To: to, Size: size, Buckets: buckets})
	}
	explicit := of(segmentation.Plan{Kind: segmentation.Explicit, Explicit: []segmentation.Content{{
		Kind: segmentation.Exact,
		Text: strings.Repeat("x", 192<<10),
	}}})
	w := newWorld(t, testcluster.Options{}, 0, func(string) []task.Behavior { return nil }, "a")
	for name, c := range map[string]struct {
		change         func(p *partition)
		field, problem string
	}{
		"an alphabet unsorted":         {texts("acb"), "segmentation.alphabets[0]", "'b' comes after 'c'"},
		"a range that descends":        {texts("z-a"), "segmentation.alphabets[0]", "descends"},
		"an alphabet with repeats":     {texts("abb"), "segmentation.alphabets[0]", "'b' comes after 'b'"},
		"repeats by overlapping range": {texts("a-fc-z"), "segmentation.alphabets[0]", "'c' comes after 'f'"},
		"from = to":                    {numbers(5, 5, 1, 0), "segmentation.from", "5, want less than to, which is 5"},
		"from > to":                    {numbers(6, 5, 1, 0), "segmentation.from", "6, want less than to, which is 5"},
		"size 0":                       {numbers(0, 5, 0, 0), "segmentation.size", "0"},
		"over 10^9 buckets":            {numbers(0, 1<<40, 0, 1e9+1), "segmentation.buckets", "1000000001, want 1 to"},
		"over 10^9 buckets by size":    {numbers(0, 1e9+1, 1, 0), "segmentation.size", "the limit is 1000000000"},
		"over 256 threads":             {func(p *partition) { p.Threads = 257 }, "threads", "257, want 0 to 256"},
		"over 256 workers":             {func(p *partition) { p.Workers = 257 }, "workers", "257, want 0 to 256"},
		"192 KiB of explicit buckets":  {explicit, "segmentation.explicit", "exceed the limit of 196608"},
	} {
		p := partition{
			Items: func(context.Context, struct{}, work.Bucket) iter.Seq2[int64, error] {
				return func(func(int64, error) bool) {}
			},
			Process: func(context.Context, int64) error { return nil },
		}
		c.change(&p)
		const id events.TaskID = "tenant/refused"
		f, err := work.Define("refused", nil, p).Submit(w.within(), w.client, struct{}{}, task.SubmitOptions{ID: id})
		if f != nil {
			f.Close()
		}
		invalid, is := errors.AsType[*events.InvalidError](err)
		if !is || invalid.Field != "partitions[0]."+c.field || !strings.Contains(invalid.Problem, c.problem) {
			t.Errorf("%s: %v, want %s: %s", name, err, c.field, c.problem)
		}
		if _, err := w.client.GetLinear(w.within(), id); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("%s: the task is there: %v", name, err)
		}
	}
}

// As many threads, workers and bytes as are allowed are taken.
func TestSubmit_TakesADefinitionAtItsLimits(t *testing.T) {
	t.Parallel()
	plan := segmentation.Plan{Kind: segmentation.Explicit}
	for n := int64(0); plan.Bytes() < work.MaxSegmentationBytes-200; n++ {
		plan.Explicit = append(plan.Explicit, segmentation.Content{Kind: segmentation.Numeric, From: n, To: n + 1})
	}
	to := newTally()
	define := func(node string) *work.Work[struct{}, int64] {
		return work.Define("large", nil, work.Partition[struct{}, int64]{
			Items: func(_ context.Context, _ struct{}, b work.Bucket) iter.Seq2[int64, error] {
				return func(yield func(int64, error) bool) { yield(b.From, nil) }
			},
			Process: func(_ context.Context, n int64) error {
				to.processed(node, number{"1", n})
				return nil
			},
			Segmentation: plan,
			Workers:      3,
			Threads:      work.MaxThreads,
		})
	}
	w := newWorld(t, testcluster.Options{}, 0, func(node string) []task.Behavior {
		return []task.Behavior{define(node)}
	}, "a", "b")
	id := events.TaskID("t/" + strings.Repeat("x", events.MaxWorkParentBytes-len("t/")))
	r, err := w.submit(define("client"), id).Wait(w.within())
	w.must(err)
	if p := r.Partitions[0]; p.Done != int64(len(plan.Explicit)) || len(to.times) != len(plan.Explicit) {
		t.Errorf("%+v, %d items, want %d", p, len(to.times), len(plan.Explicit))
	}
	w.workersEnded(id)
	long := id + "y"
	_, err = define("client").Submit(w.within(), w.client, struct{}{}, task.SubmitOptions{ID: long})
	limit, is := errors.AsType[*task.LimitError](err)
	if !is || limit.Field != "id" || limit.Limit != events.MaxWorkParentBytes {
		t.Errorf("a parent of %d bytes: %v", len(long), err)
	}
	if _, err := w.client.GetLinear(w.within(), long); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("a parent of %d bytes: the task is there: %v", len(long), err)
	}
}
