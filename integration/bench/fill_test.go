package bench_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/measure"
	"taskledger/task"
)

const (
	keptOfShard = 1_000_000 // bounds the finished tasks that a shard keeps, of however many shards there are
	fillers     = 8         // submit at once
	ofFill      = "kept"    // the behavior of the tasks
	rareOwner   = 200       // of so many tasks one has an affinity of its own
	sampleTask  = events.TaskID("sample/1")
	fillWithin  = 30 * time.Minute // bounds the wait for the end of the last of them
	countAgain  = 200 * time.Millisecond
)

// fill makes the tasks that pages list.
type fill struct {
	behavior task.Behavior
}

func newFill() *fill {
	rules := &behaviors.Rules[int, int]{Policy: task.Policy{MaxAttempts: 1, RetainCount: keptOfShard}}
	kept := behaviors.Define(ofFill, rules)
	return &fill{kept.Bind(func(_ context.Context, n int) (int, error) { return n, nil })}
}

// pages lists the pages of tasks that refresh themselves.
func (f *fill) pages() []string {
	query := func(name, value string) string { return "/ui/tasks?" + url.Values{name: {value}}.Encode() }
	return []string{
		"/ui/",
		"/ui/tasks",
		"/ui/tasks/" + strings.ReplaceAll(string(sampleTask), "/", "~"),
		"/ui/behaviors",
		"/ui/nodes",
		query("substatus", task.SubScheduled.String()),
		query("affinity-prefix", "tenant-"),
		query("behavior", ofFill),
		query("status", task.Success.String()),
	}
}

// rareAffinity is the affinity of the i-th task, if it has one of its own.
func rareAffinity(i int) string { return fmt.Sprintf("tenant-%d", i%97) }

// fill makes the tasks that wait for their time, and then those that have ended. It names them all, which spreads them
// over all shards: random ids are of the shards of one node, which may keep fewer.
func (f *fill) fill(ctx context.Context, p *measure.Pair, finished, waiting int) error {
	far := time.Now().Add(farAhead)
	err := f.submit(ctx, p, waiting, func(r *task.Request, i int) {
		r.ID, r.NotBefore = events.TaskID(fmt.Sprintf("waits-%d", i)), far
	})
	if err != nil {
		return fmt.Errorf("make waiting tasks: %w", err)
	}
	err = f.submit(ctx, p, finished, func(r *task.Request, i int) {
		switch r.ID = events.TaskID(fmt.Sprintf("kept-%d", i)); {
		case i == 0:
			r.ID = sampleTask
		case i%rareOwner == 0:
			r.ID = events.TaskID(fmt.Sprintf("%s/%d", rareAffinity(i), i))
		}
	})
	if err != nil {
		return fmt.Errorf("make finished tasks: %w", err)
	}
	return f.settle(ctx, p, finished)
}

// submit submits so many tasks, in batches.
func (f *fill) submit(ctx context.Context, p *measure.Pair, n int, change func(r *task.Request, i int)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fillers)
	for from := 0; from < n; from += batchTasks {
		g.Go(func() error {
			requests := make([]task.Request, min(batchTasks, n-from))
			for i := range requests {
				requests[i] = task.Request{Behavior: f.behavior, Params: []byte("1")}
				change(&requests[i], from+i)
			}
			for _, made := range p.SubmitMany(ctx, requests, task.ManyOptions{}) {
				if made.Err != nil {
					return made.Err
				}
				made.Close()
			}
			return nil
		})
	}
	return g.Wait()
}

// settle waits until so many tasks have ended. It fails once none goes on and fewer are kept.
func (f *fill) settle(ctx context.Context, p *measure.Pair, finished int) error {
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	for {
		counts, err := p.Counts(ctx, ofFill)
		if err != nil {
			return fmt.Errorf("count what has ended: %w", err)
		}
		ended, goOn := int64(0), int64(0)
		for _, n := range counts.Rows {
			switch {
			case n.Status == task.Success:
				ended += n.Tasks
			case n.Substatus != task.SubScheduled:
				goOn += n.Tasks
			}
		}
		switch {
		case ended >= int64(finished):
			return nil
		case goOn == 0 && len(counts.Missing) == 0:
			return fmt.Errorf("%d of %d tasks that have ended are kept, and none goes on", ended, finished)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d tasks have ended: %w", ended, finished, context.Cause(ctx))
		case <-time.After(countAgain):
		}
	}
}
