package traffic

import (
	"context"
	"errors"
	"iter"
	"time"

	"taskledger/events"
	"taskledger/task"
	works "taskledger/work"
	"taskledger/work/segmentation"
)

// ErrandID is the behavior of works: an errand first simulates its items, and then does them, by several workers.
const ErrandID = "errand"

// errandItems is the number of items of an errand, and mostChanges the number of those that may make a change.
const errandItems, mostChanges = 24, 6

// errand runs a work, and reports its attempts. It implements task.Behavior.
type errand[I any] struct {
	*works.Work[Params, I]
	begin  int64        // of the run, as history.Now tells
	report func(Report) // hears of every attempt before the engine hears of its outcome; nil where nothing runs
}

type errandItem struct {
	n      int64
	millis int
}

// newErrand returns the behavior of a process.
func newErrand(begin int64, report func(Report)) *errand[errandItem] {
	think := works.Partition[Params, errandItem]{
		ID:           "think",
		Mode:         works.Simulate,
		Items:        errandItemsOf,
		Process:      doErrand,
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: errandItems, Buckets: 4},
		Workers:      2,
		Thresholds:   []works.Threshold{{Counter: "changes", Limit: mostChanges}},
	}
	do := think
	do.ID, do.Mode, do.Workers, do.Threads = "do", works.Full, 3, 2
	do.Segmentation.Buckets = 8
	policy := &works.Options{Policy: workPolicy()}
	return &errand[errandItem]{works.Define(ErrandID, policy, think, do), begin, report}
}

func workPolicy() task.Policy {
	return task.Policy{
		MaxAttempts: maxAttempts,
		Backoff:     backoff,
		MaxLost:     50,
		LostDelay:   time.Millisecond,
		Existing:    events.RunAgain,
	}
}

// errandItemsOf returns the items of a bucket. Iterators fail in the first attempts of a task, as often as its parameters
// say, once an item was processed.
func errandItemsOf(ctx context.Context, p Params, b works.Bucket) iter.Seq2[errandItem, error] {
	info, _ := works.Run(ctx)
	return func(yield func(errandItem, error) bool) {
		for n := b.From; n < b.To; n++ {
			if n == b.From+1 && info.Attempt <= p.Fails {
				yield(errandItem{}, errors.New("as planned"))
				return
			}
			if !yield(errandItem{n, p.Millis}, nil) {
				return
			}
		}
	}
}

// doErrand works on an item: some of them fail, some are left out, and the first ones make a change.
func doErrand(ctx context.Context, it errandItem) error {
	timer := time.NewTimer(time.Duration(it.millis) * time.Millisecond / 4)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case it.n < mostChanges:
		return works.Permit(ctx, "changes")
	case it.n%7 == 6:
		return errors.New("as planned")
	case it.n%5 == 4:
		return works.Skip("as planned")
	}
	return nil
}

// Run implements task.Behavior.
func (e *errand[I]) Run(ctx context.Context, a task.Attempt) task.Outcome {
	return reporting(ctx, a, e.begin, Report{Behavior: e.ID()}, e.report, func() (task.Outcome, bool) {
		return e.Work.Run(withTries(ctx, a), a), false
	})
}
