package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/meter"
	"taskledger/task"
)

// ManyConfig says how to compare submits of many tasks together with a closed loop of single ones.
type ManyConfig struct {
	InFlight int           // tasks under way in either loop; at least one for each caller, and at most 1,000
	Callers  int           // how many goroutines call SubmitMany, each with its share of the tasks
	Duration time.Duration // all windows together take so long, and each at least 2 s
}

// ManyResult holds the measured values. Those without a prefix belong to the loop of single submits.
type ManyResult struct {
	TasksPerS        float64 `json:"tasks_per_s"`
	ManyTasksPerS    float64 `json:"many_tasks_per_s"`
	Ratio            float64 `json:"ratio"` // median over pairs of neighbouring windows
	CPUUsPerTask     float64 `json:"cpu_us_per_task"`
	ManyCPUUsPerTask float64 `json:"many_cpu_us_per_task"`
	InFlight         int     `json:"in_flight"`
	Callers          int     `json:"callers"`
	DurationS        float64 `json:"duration_s"`
}

// Many makes windows of the closed loop of Run, and of one whose callers submit many tasks together, in turn.
func Many(ctx context.Context, cfg ManyConfig) (r ManyResult, err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	a, b, err := startPair(ctx, s, cfg.InFlight, [2]meter.Meter{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, a.close(), b.close()) }()
	single, size := submitAndWait(a), cfg.InFlight/cfg.Callers
	together := submitManyAndWait(a, size)
	if _, err := closedLoop(ctx, cfg.InFlight, warmUp, single); err != nil {
		return r, err
	}
	if _, err := closedLoop(ctx, cfg.Callers, warmUp, together); err != nil {
		return r, err
	}
	pairs := max(1, int(cfg.Duration/(2*minWindow)))
	length := max(minWindow, cfg.Duration/time.Duration(2*pairs))
	var one, many work
	var ratios []float64
	for range pairs {
		alone, err := one.window(ctx, s, cfg.InFlight, length, 1, single)
		if err != nil {
			return r, err
		}
		with, err := many.window(ctx, s, cfg.Callers, length, size, together)
		if err != nil {
			return r, err
		}
		ratios = append(ratios, with.perSecond()/alone.perSecond())
	}
	return ManyResult{TasksPerS: one.perSecond(), ManyTasksPerS: many.perSecond(), Ratio: median(ratios), CPUUsPerTask: one.cpuPerTask(),
		ManyCPUUsPerTask: many.cpuPerTask(), InFlight: cfg.InFlight, Callers: cfg.Callers, DurationS: (one.took + many.took).Seconds()}, nil
}

// submitManyAndWait is one turn of a caller that submits so many tasks together.
func submitManyAndWait(n *node, size int) func(context.Context, int) error {
	requests := make([]task.Request, size)
	for i := range requests {
		requests[i].Behavior = builtin.Noop()
	}
	return func(ctx context.Context, _ int) error {
		results := n.SubmitMany(ctx, requests, task.ManyOptions{})
		for i := range results {
			r := &results[i]
			if r.Err != nil {
				return fmt.Errorf("submit many: %w", r.Err)
			}
			if _, err := r.Wait(ctx); err != nil {
				return fmt.Errorf("wait for %s: %w", r.ID(), err)
			}
		}
		return nil
	}
}
