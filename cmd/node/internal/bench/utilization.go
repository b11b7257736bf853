package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/task"
)

// UtilizationConfig says how to measure how well slots are used while work waits for them.
type UtilizationConfig struct {
	Nodes    int
	Slots    int           // of each node
	Task     time.Duration // how long a task runs
	Waiting  int           // tasks that are submitted and have not ended, for each slot; more than 1
	Affinity bool          // all tasks share an affinity, and so a shard; else each node submits random ids
	Duration time.Duration // of the window that is measured
}

// UtilizationResult is the share of their time in which slots ran a function, while tasks waited for them all the time.
type UtilizationResult struct {
	Utilization  float64 `json:"utilization"`
	Least        float64 `json:"least_of_a_node"`
	TasksPerS    float64 `json:"tasks_per_s"`
	CPUUsPerTask float64 `json:"cpu_us_per_task"` // all threads of this process, etcd's among them
	Slots        int     `json:"slots"`           // of all nodes
	TaskMs       float64 `json:"task_ms"`
	DurationS    float64 `json:"duration_s"`
}

// Utilization keeps more tasks waiting than there are slots and measures for how much of their time the slots run one.
func Utilization(ctx context.Context, cfg UtilizationConfig) (r UtilizationResult, err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	nodes := make([]*node, 0, cfg.Nodes)
	defer func() {
		for _, n := range slices.Backward(nodes) {
			err = errors.Join(err, n.close())
		}
	}()
	busy := make([]atomic.Int64, cfg.Nodes) // nanoseconds
	for i := range cfg.Nodes {
		link, err := s.link(ctx)
		if err != nil {
			return r, err
		}
		n, err := startNode(ctx, link, engine.NodeConfig{Name: fmt.Sprint("n", i), Slots: cfg.Slots, Grace: -1,
			Behaviors: []task.Behavior{occupy(&busy[i], cfg.Task)}})
		if err != nil {
			return r, err
		}
		nodes = append(nodes, n)
	}
	if err := settle(ctx, nodes...); err != nil {
		return r, err
	}
	load, stop := context.WithCancel(ctx)
	var loops sync.WaitGroup
	defer loops.Wait()
	defer stop()
	var ended atomic.Int64
	failed := make(chan error, 1)
	for i := range cfg.Nodes * cfg.Slots * cfg.Waiting {
		loops.Go(func() {
			if err := cfg.keepWaiting(load, nodes[i%len(nodes)], i, &ended); err != nil && load.Err() == nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	return cfg.measure(ctx, s, busy, &ended, failed)
}

// occupy is a behavior that takes a slot for some time and adds how long it did.
func occupy(busy *atomic.Int64, d time.Duration) task.Behavior {
	return behaviors.Define[behaviors.None, behaviors.None]("occupy", nil).Bind(func(ctx context.Context, _ behaviors.None) (behaviors.None, error) {
		began := time.Now()
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		busy.Add(int64(time.Since(began)))
		return behaviors.None{}, ctx.Err()
	})
}

// keepWaiting submits one task after the other.
func (cfg *UtilizationConfig) keepWaiting(ctx context.Context, n *node, loop int, ended *atomic.Int64) error {
	b := occupy(new(atomic.Int64), cfg.Task)
	for turn := 0; ; turn++ {
		var o task.SubmitOptions
		if cfg.Affinity {
			o.ID = events.TaskID(fmt.Sprintf("one/%d-%d", loop, turn))
		}
		f, err := n.Submit(ctx, b, nil, o)
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		if _, err := f.Wait(ctx); err != nil {
			return fmt.Errorf("wait for %s: %w", f.ID(), err)
		}
		ended.Add(1)
	}
}

func (cfg *UtilizationConfig) measure(ctx context.Context, s *servers, busy []atomic.Int64, ended *atomic.Int64, failed <-chan error) (r UtilizationResult, err error) {
	wait := func(d time.Duration) error {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
			return nil
		}
	}
	if err := wait(utilizationWarmUp); err != nil {
		return r, err
	}
	before := make([]int64, len(busy))
	for i := range busy {
		before[i] = busy[i].Load()
	}
	cpu, err := s.cpu()
	if err != nil {
		return r, err
	}
	tasks, began := ended.Load(), time.Now()
	if err := wait(cfg.Duration); err != nil {
		return r, err
	}
	took := time.Since(began)
	used, err := s.cpu()
	if err != nil {
		return r, err
	}
	tasks = ended.Load() - tasks
	r = UtilizationResult{Least: 1, TasksPerS: float64(tasks) / took.Seconds(), CPUUsPerTask: float64((used - cpu).Microseconds()) / float64(max(tasks, 1)),
		Slots: cfg.Nodes * cfg.Slots, TaskMs: float64(cfg.Task.Microseconds()) / 1000, DurationS: took.Seconds()}
	for i := range busy {
		share := float64(busy[i].Load()-before[i]) / float64(took) / float64(cfg.Slots)
		r.Utilization += share / float64(len(busy))
		r.Least = min(r.Least, share)
	}
	return r, nil
}

const utilizationWarmUp = 2 * time.Second
