// Package overworks measures works: how fast their buckets end, and how much of their time workers spend on items.
package overworks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/bench"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

const (
	warmUp = time.Second // in which the workers of a work are made, and come to their speed
	pairs  = 3           // counts the pairs of windows: one of tasks, then one of buckets

	manyBuckets = segmentation.MaxBuckets // more than a window has time for
)

// MaxWorkers bounds the workers of a work.
const MaxWorkers = work.MaxWorkers

// Config says how many workers end empty buckets beside as many tasks in flight, and how long.
type Config struct {
	Workers  int           // ends buckets at once, 1 to MaxWorkers; as many tasks are in flight
	Duration time.Duration // bounds the time of all windows together
}

// Result holds the measured values.
type Result struct {
	Workers        int     `json:"workers"`
	TasksPerS      float64 `json:"tasks_per_s"` // noop tasks of one shard, as many in flight as there are workers
	BucketsPerS    float64 `json:"buckets_per_s"`
	Ratio          float64 `json:"ratio"`           // median over pairs of neighbouring windows
	CPUUsPerTask   float64 `json:"cpu_us_per_task"` // all threads of this process, etcd's among them
	CPUUsPerBucket float64 `json:"cpu_us_per_bucket"`
	OnItems        float64 `json:"on_items"` // share of the time of 30 workers that they spend on items of 5 ms
	ItemBuckets    int     `json:"item_buckets"`
}

// Bounds are for checks; zero ones allow everything.
type Bounds struct {
	Ratio   float64 // bounds Result.Ratio from below
	OnItems float64 // bounds Result.OnItems from below
}

// Within returns which bound is broken.
func (r Result) Within(b Bounds) error {
	switch {
	case r.Ratio < b.Ratio:
		return fmt.Errorf("ratio %.2f is below the %.2f asked for", r.Ratio, b.Ratio)
	case r.OnItems < b.OnItems:
		return fmt.Errorf("workers spend %.2f of their time on items, less than the %.2f asked for", r.OnItems, b.OnItems)
	}
	return nil
}

// Run measures works on two nodes: one submits and owns half of the shards, the other one runs tasks and workers.
func Run(ctx context.Context, cfg Config) (r Result, err error) {
	empty, items := newEmpty(cfg.Workers), newBusy()
	p, err := bench.StartPair(ctx, max(cfg.Workers, itemWorkers), empty.Work, items.Work)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	r = Result{Workers: cfg.Workers, ItemBuckets: itemBuckets}
	var tasks, buckets count
	var ratios []float64
	length := cfg.Duration / (2 * pairs)
	for pair := range pairs {
		one, err := tasksWindow(ctx, p, cfg.Workers, length)
		if err != nil {
			return r, err
		}
		other, err := empty.window(ctx, p, pair, length)
		if err != nil {
			return r, err
		}
		tasks.add(one)
		buckets.add(other)
		ratios = append(ratios, other.perSecond()/one.perSecond())
	}
	r.TasksPerS, r.CPUUsPerTask = tasks.perSecond(), tasks.cpuEach()
	r.BucketsPerS, r.CPUUsPerBucket = buckets.perSecond(), buckets.cpuEach()
	r.Ratio = bench.Median(ratios)
	r.OnItems, err = items.share(ctx, p)
	return r, err
}

// count counts what has ended in a time, and the processor time of that.
type count struct {
	ended     int64
	took, cpu time.Duration
}

func (c *count) add(of count) {
	c.ended += of.ended
	c.took += of.took
	c.cpu += of.cpu
}

func (c *count) perSecond() float64 { return float64(c.ended) / c.took.Seconds() }

func (c *count) cpuEach() float64 { return float64(c.cpu.Microseconds()) / float64(max(c.ended, 1)) }

// tasksWindow counts the noop tasks of one shard that end.
func tasksWindow(ctx context.Context, p *bench.Pair, inFlight int, length time.Duration) (c count, err error) {
	var turn atomic.Int64
	prefix := fmt.Sprintf("one/%d-", time.Now().UnixNano())
	submit := func(ctx context.Context, _ int) error {
		id := events.TaskID(fmt.Sprint(prefix, turn.Add(1)))
		f, err := p.Submit(ctx, builtin.Noop(), nil, task.SubmitOptions{ID: id})
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		_, err = f.Wait(ctx)
		return err
	}
	if _, _, _, err := bench.Loop(ctx, inFlight, warmUp, submit); err != nil {
		return c, err
	}
	before, err := bench.CPU()
	if err != nil {
		return c, err
	}
	ended, took, _, err := bench.Loop(ctx, inFlight, length, submit)
	if err != nil {
		return c, err
	}
	after, err := bench.CPU()
	return count{ended: int64(ended), took: took, cpu: after - before}, err
}

// empty is a work of buckets without items.
type empty struct {
	*work.Work[behaviors.None, int64]
	begun atomic.Int64 // buckets
}

func newEmpty(workers int) *empty {
	e := &empty{}
	e.Work = work.Define("empty", nil, work.Partition[behaviors.None, int64]{
		Items: func(context.Context, behaviors.None, work.Bucket) iter.Seq2[int64, error] {
			e.begun.Add(1)
			return func(func(int64, error) bool) {}
		},
		Process:      func(context.Context, int64) error { return nil },
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: manyBuckets, Buckets: manyBuckets},
		Workers:      int64(workers),
	})
	return e
}

// window counts the buckets of a work that end, and ends the work.
func (e *empty) window(ctx context.Context, p *bench.Pair, number int, length time.Duration) (c count, err error) {
	id := events.TaskID(fmt.Sprint("empty-", number))
	f, err := e.Submit(ctx, p, behaviors.None{}, task.SubmitOptions{ID: id})
	if err != nil {
		return c, fmt.Errorf("submit: %w", err)
	}
	if err := pause(ctx, warmUp); err != nil {
		return c, err
	}
	cpu, err := bench.CPU()
	if err != nil {
		return c, err
	}
	begun, before := time.Now(), e.begun.Load()
	if err := pause(ctx, length); err != nil {
		return c, err
	}
	c.took, c.ended = time.Since(begun), e.begun.Load()-before
	after, err := bench.CPU()
	if err != nil {
		return c, err
	}
	c.cpu = after - cpu
	if err := p.Operations().Cancel(ctx, id, "the window is over"); err != nil {
		return c, fmt.Errorf("cancel: %w", err)
	}
	if _, err := f.Wait(ctx); err == nil {
		return c, errors.New("the work has ended before the window")
	}
	return c, ctx.Err()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
