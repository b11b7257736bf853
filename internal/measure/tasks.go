package measure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/task"
)

const (
	putWriters = 64
	putBytes   = 256
	aloneFor   = time.Second // in which one writer alone shows the latency of the baseline
)

// Tasks holds the throughput and latency of tasks. Times belong to windows of tasks unless they say baseline.
type Tasks struct {
	TasksPerS           float64 `json:"tasks_per_s"`
	BaselinePutsPerS    float64 `json:"baseline_puts_per_s"`
	Ratio               float64 `json:"ratio"` // median over pairs of neighbouring windows
	P50Ms               float64 `json:"p50_ms"`
	P99Ms               float64 `json:"p99_ms"`
	BaselineP50Ms       float64 `json:"baseline_p50_ms"` // of one writer alone
	CPUUsPerTask        float64 `json:"cpu_us_per_task"` // all threads of this process and of etcd
	EtcdRequestsPerTask float64 `json:"etcd_requests_per_task"`
	InFlight            int     `json:"in_flight"`
	Nodes               int     `json:"nodes"`
	DurationS           float64 `json:"duration_s"`
	Tasks               int     `json:"tasks"`
}

// MeasureTasks submits noop tasks on one node, which runs none, has another one run them, and waits for each, in
// windows that alternate with windows of the baseline: single puts by many writers through the same kind of client.
func MeasureTasks(ctx context.Context, s *Servers, inFlight int, total time.Duration) (Tasks, error) {
	runs := engine.NodeConfig{Behaviors: []task.Behavior{builtin.Noop()}}
	p, err := StartPair(ctx, s, inFlight, engine.NodeConfig{}, runs)
	if err != nil {
		return Tasks{}, err
	}
	r, err := p.measureTasks(ctx, s, inFlight, total)
	return r, errors.Join(err, p.Close())
}

func (p *Pair) measureTasks(ctx context.Context, s *Servers, inFlight int, total time.Duration) (r Tasks, err error) {
	tasks, puts := Closed(inFlight, 1, SubmitAndWait(p.Client)), Closed(putWriters, 1, s.put)
	if err := Warm(ctx, tasks, puts); err != nil {
		return r, err
	}
	var requests uint64
	counted := func(ctx context.Context, length time.Duration) (w Window, err error) {
		applied, failed := s.applied(ctx)
		cpu, err := s.etcdCPU()
		if err := errors.Join(failed, err); err != nil {
			return w, err
		}
		if w, err = tasks(ctx, length); err != nil {
			return w, err
		}
		used, err := s.etcdCPU()
		now, failed := s.applied(ctx)
		w.CPU += used - cpu
		requests += now - applied
		return w, errors.Join(err, failed)
	}
	all, err := ByTurns(ctx, total, MinWindow, counted, puts)
	if err != nil {
		return r, err
	}
	alone, err := Loop(ctx, 1, aloneFor, s.put)
	of, baseline := all[0].Sum(), all[1].Sum()
	return Tasks{
		TasksPerS:           of.PerSecond(),
		BaselinePutsPerS:    baseline.PerSecond(),
		Ratio:               Ratio(all[0], all[1]),
		P50Ms:               Quantile(of.Times, 0.50),
		P99Ms:               Quantile(of.Times, 0.99),
		BaselineP50Ms:       Quantile(alone.Times, 0.50),
		CPUUsPerTask:        of.CPUEach(),
		EtcdRequestsPerTask: float64(requests) / float64(max(of.Count, 1)),
		InFlight:            inFlight,
		Nodes:               2,
		DurationS:           of.Took.Seconds(),
		Tasks:               of.Count,
	}, err
}

// put is one turn of the baseline: a durable write of a key of the writer's own.
func (s *Servers) put(ctx context.Context, writer int) error {
	if _, err := s.raw.Put(ctx, fmt.Sprintf("baseline/%02d", writer), strings.Repeat("v", putBytes)); err != nil {
		return fmt.Errorf("baseline put: %w", err)
	}
	return nil
}

// SubmitAndWait returns the turn of a caller who submits a noop task and waits for it.
func SubmitAndWait(c *engine.Client) Op { return Submit(c, builtin.Noop(), nil) }

// Submit returns the turn of a caller who submits a task of a behavior, with the options for the turn of a worker, and
// waits for it; nil options are the zero ones.
func Submit(c *engine.Client, b task.Behavior, options func(worker int) task.SubmitOptions) Op {
	return func(ctx context.Context, worker int) error {
		var o task.SubmitOptions
		if options != nil {
			o = options(worker)
		}
		f, err := c.Submit(ctx, b, nil, o)
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		if _, err := f.Wait(ctx); err != nil {
			return fmt.Errorf("wait for %s: %w", f.ID(), err)
		}
		return nil
	}
}
