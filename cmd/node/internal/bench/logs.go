package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/meter"
	"taskledger/task"
)

// LogsConfig says how to compare tasks that log with tasks that do not.
type LogsConfig struct {
	InFlight int           // tasks under way; 1 or more
	Lines    int           // that each function logs; 1 or more
	Duration time.Duration // all windows together take so long, and each at least 2 s
}

// LogsResult holds the measured values. Those without a prefix belong to tasks that log nothing, on the same nodes.
type LogsResult struct {
	TasksPerS       float64 `json:"tasks_per_s"`
	LogTasksPerS    float64 `json:"log_tasks_per_s"`
	Ratio           float64 `json:"ratio"` // median over pairs of neighbouring windows
	CPUUsPerTask    float64 `json:"cpu_us_per_task"`
	LogCPUUsPerTask float64 `json:"log_cpu_us_per_task"`
	KeptLines       int64   `json:"kept_lines"`
	DroppedLines    int64   `json:"dropped_lines"`
	UncountedLines  int64   `json:"uncounted_lines"` // neither kept nor dropped
	InFlight        int     `json:"in_flight"`
	DurationS       float64 `json:"duration_s"`
}

// Logs makes windows of the closed loop of Run whose functions log nothing, and log lines, in turn. What is logged is
// stored, or dropped, before the next window begins.
func Logs(ctx context.Context, cfg LogsConfig) (r LogsResult, err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	logs := &logsLoad{Behavior: builtin.Noop(), lines: cfg.Lines}
	a, b, err := logs.start(ctx, s, cfg.InFlight)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, a.close(), b.close()) }()
	silent, loud := submitTo(a, builtin.Noop()), submitTo(a, logs)
	for _, op := range []func(context.Context, int) error{silent, loud} {
		if _, err := closedLoop(ctx, cfg.InFlight, warmUp, op); err != nil {
			return r, err
		}
	}
	pairs := max(1, int(cfg.Duration/(2*minWindow)))
	length := max(minWindow, cfg.Duration/time.Duration(2*pairs))
	var without, with work
	var ratios []float64
	for range pairs {
		logs.settle()
		one, err := without.window(ctx, s, cfg.InFlight, length, 1, silent)
		if err != nil {
			return r, err
		}
		other, err := with.window(ctx, s, cfg.InFlight, length, 1, loud)
		if err != nil {
			return r, err
		}
		ratios = append(ratios, other.perSecond()/one.perSecond())
	}
	logs.settle()
	return LogsResult{
		TasksPerS:       without.perSecond(),
		LogTasksPerS:    with.perSecond(),
		Ratio:           median(ratios),
		CPUUsPerTask:    without.cpuPerTask(),
		LogCPUUsPerTask: with.cpuPerTask(),
		KeptLines:       logs.kept.Load(),
		DroppedLines:    logs.dropped.Load(),
		UncountedLines:  logs.uncounted(),
		InFlight:        cfg.InFlight,
		DurationS:       (without.took + with.took).Seconds(),
	}, nil
}

// logsLoad is a behavior whose function logs, and a meter of what becomes of the lines.
type logsLoad struct {
	task.Behavior         // with the plans of noop
	lines                 int
	logged, kept, dropped atomic.Int64
}

// ID implements task.Behavior.
func (*logsLoad) ID() string { return "logs" }

// Run implements task.Behavior.
func (l *logsLoad) Run(_ context.Context, a task.Attempt) task.Outcome {
	for i := range l.lines {
		a.Log.Info("a line of a task", "number", i)
	}
	l.logged.Add(int64(l.lines))
	return task.Outcome{}
}

// start starts A, which submits and runs nothing, and B, which runs and keeps logs.
func (l *logsLoad) start(ctx context.Context, s *servers, inFlight int) (a, b *node, err error) {
	linkA, err := s.link(ctx)
	if err != nil {
		return nil, nil, err
	}
	if a, err = startNode(ctx, linkA, engine.NodeConfig{Name: "a", Slots: -1}); err != nil {
		return nil, nil, err
	}
	linkB, err := s.link(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, a.close())
	}
	b, err = startNode(ctx, linkB, engine.NodeConfig{
		Name:      "b",
		Slots:     max(512, perTaskSlots*inFlight),
		Behaviors: []task.Behavior{builtin.Noop(), l},
		Meter:     l,
		Logs:      linkB.Logs,
	})
	if err != nil {
		return nil, nil, errors.Join(err, a.close())
	}
	if err := settle(ctx, a, b); err != nil {
		return nil, nil, errors.Join(err, a.close(), b.close())
	}
	return a, b, nil
}

// settledWithin bounds the wait for what is logged to be stored or dropped.
const settledWithin = 10 * time.Second

// settle waits until all lines are counted.
func (l *logsLoad) settle() {
	for end := time.Now().Add(settledWithin); l.uncounted() != 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}

func (l *logsLoad) uncounted() int64 { return l.logged.Load() - l.kept.Load() - l.dropped.Load() }

// Count implements meter.Meter.
func (l *logsLoad) Count(c meter.Counter, _ string, n int64) {
	switch c {
	case meter.LogLinesKept:
		l.kept.Add(n)
	case meter.LogLinesDropped:
		l.dropped.Add(n)
	}
}

// Observe implements meter.Meter.
func (*logsLoad) Observe(meter.Histogram, string, []float64) {}

// Set implements meter.Meter.
func (*logsLoad) Set(meter.Gauge, string, float64) {}
