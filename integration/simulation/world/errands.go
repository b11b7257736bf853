package world

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/task"
	works "taskledger/work"
	"taskledger/work/segmentation"
)

// The works. Their items are numbers.
const (
	walk    = "walk"    // buckets for several workers
	limited = "limited" // a partition is simulated before another one, and a counter has a limit
	alone   = "alone"   // one bucket, whose items need no second worker
)

// changeCounter counts the changes of the work limited, of which mostChanges are allowed to each of its partitions.
const (
	changeCounter = "changes"
	mostChanges   = 8
)

// walkTo, limitedTo and aloneTo bound the items.
const walkTo, limitedTo, aloneTo = 40, 24, 6

// errand is a work on one process. It implements task.Behavior.
type errand[I any] struct {
	*works.Work[job, I]
	record *recorder
	killed context.Context // of the process
}

// step is an item.
type step struct {
	n   int64
	job job
}

// errands returns the works of a process.
func errands(killed context.Context, r *recorder, feeds *changeLogs) []task.Behavior {
	policy := &works.Options{Policy: task.Policy{
		MaxAttempts: 3,
		MaxLost:     5,
		LostDelay:   10 * time.Millisecond,
		Backoff:     task.Backoff{Base: 200 * time.Millisecond, Max: time.Second},
		Existing:    events.RunAgain,
	}}
	changes := []works.Threshold{{Counter: changeCounter, Limit: mostChanges}}
	walkPart := works.Partition[job, step]{
		Items:        stepsTo(walkTo),
		Process:      processStep(r),
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: walkTo, Buckets: 8},
		Workers:      3,
		Threads:      2,
	}
	thinkPart := works.Partition[job, step]{
		ID:           "think",
		Mode:         works.Simulate,
		Items:        stepsTo(limitedTo),
		Count:        func(context.Context, job) (int64, error) { return limitedTo, nil },
		Process:      processStep(r),
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: limitedTo, Buckets: 3},
		Workers:      2,
		Thresholds:   changes,
	}
	doPart := thinkPart
	doPart.ID, doPart.Mode, doPart.Workers = "do", works.Full, 3
	alonePart := works.Partition[job, step]{Items: stepsTo(aloneTo), Process: processStep(r)}
	all := (&streams{feeds, r, killed}).behaviors(policy)
	for _, w := range []*works.Work[job, step]{
		works.Define(walk, policy, walkPart),
		works.Define(limited, policy, thinkPart, doPart),
		works.Define(alone, policy, alonePart),
	} {
		all = append(all, &errand[step]{w, r, killed})
	}
	return all
}

// stepsTo returns the items of a bucket, up to a number. Iterators fail in the first attempts of a task, as its job says.
func stepsTo(last int64) func(context.Context, job, works.Bucket) iter.Seq2[step, error] {
	return func(ctx context.Context, j job, b works.Bucket) iter.Seq2[step, error] {
		from, to := b.From, b.To
		if b.Kind != segmentation.Numeric {
			from, to = 0, last
		}
		info, _ := works.Run(ctx)
		return func(yield func(step, error) bool) {
			for n := from; n < to; n++ {
				if n == from+1 && info.Attempt <= j.Breaks {
					yield(step{}, errors.New("as planned"))
					return
				}
				if !yield(step{n, j}, nil) {
					return
				}
			}
		}
	}
}

// processStep works on an item for a while. Those that make a change ask for it, and tell that they made it.
func processStep(r *recorder) func(context.Context, step) error {
	return func(ctx context.Context, s step) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(s.job.Work) * time.Millisecond):
		}
		info, _ := works.Run(ctx)
		if s.n%7 == 3 {
			return errors.New("as planned")
		}
		if s.n%5 == 4 {
			return works.Skip("as planned")
		}
		if s.n >= int64(s.job.Changes) || info.Partition != "think" && info.Partition != "do" {
			return nil
		}
		if err := works.Permit(ctx, changeCounter); err != nil {
			return err
		}
		of := ctx.Value(parentKey{}).(parent)
		if info.Mode == works.Full && of.killed.Err() == nil {
			r.Change(history.Change{
				Task:      string(of.id),
				Run:       uint32(info.Run),
				Partition: info.Partition,
				Item:      s.n,
			})
		}
		return nil
	}
}

// parent is the task that has the work of an attempt, and the life of the attempt's process.
type parent struct {
	id      events.TaskID
	attempt task.Attempt
	killed  context.Context
}

type parentKey struct{}

// Run implements task.Behavior. What it returns, and when, goes into the record.
func (e *errand[I]) Run(ctx context.Context, a task.Attempt) task.Outcome {
	at := e.record.Begin(ctx, a)
	of := parent{a.Task, a, e.killed}
	var told struct {
		Worker events.TaskID `json:"worker_of"`
		Hold   events.TaskID `json:"hold_of"`
	}
	if json.Unmarshal(a.Params, &told) == nil {
		of.id = cmp.Or(told.Worker, told.Hold, of.id)
	}
	out := e.Work.Run(context.WithValue(ctx, parentKey{}, of), a)
	if e.killed.Err() != nil {
		return out // its process died with it
	}
	x := history.Execution{
		Final:    out.Err != nil && out.Wait == 0,
		Wait:     int64(out.Wait),
		Releases: out.Release,
	}
	if !out.Release {
		x.Outcome = outcomeOf(out)
	}
	e.record.End(at, x)
	return out
}
