package bench_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/internal/measure"
	"taskledger/meter"
	"taskledger/task"
)

const (
	logsInFlight = 1000
	logsLines    = 1                // that each function logs
	countedSoon  = 10 * time.Second // bounds the wait for what is logged to be stored or dropped
)

// BenchmarkLogs compares tasks whose functions log lines with tasks that log nothing. What is logged is stored, or
// dropped, before the next window begins.
func BenchmarkLogs(b *testing.B) {
	run(b, func(tb testing.TB) figures {
		l := &logging{Behavior: noop}
		p := pairOf(tb, servers(tb, 0), logsInFlight, engine.NodeConfig{}, engine.NodeConfig{
			Behaviors: []task.Behavior{noop, l},
			Meter:     l,
		}, func(cfg *engine.NodeConfig, c *cluster.Cluster) {
			if cfg.Name == "b" {
				cfg.Logs = c.Logs
			}
		})
		loud := measure.Closed(logsInFlight, 1, measure.Submit(p.Client, l, nil))
		silent := func(ctx context.Context, d time.Duration) (measure.Window, error) {
			l.settle(ctx)
			return loadOf(p.Node, logsInFlight)(ctx, d)
		}
		warm(tb, silent, loud)
		all := byTurns(tb, lasts(4*time.Second, 24*time.Second), silent, loud)
		l.settle(tb.Context())
		if n := l.uncounted(); n != 0 {
			tb.Errorf("%d lines count neither as kept nor as dropped", n)
		}
		f := newFigures(tb)
		f.tasks("task", all[1].Sum())
		f.tasks("silent-task", all[0].Sum())
		f.is("kept-lines", float64(l.kept.Load()))
		f.is("dropped-lines", float64(l.dropped.Load()))
		// Tasks whose functions log a line each keep four fifths of the rate of those that log nothing, on a quiet
		// machine, and every line is counted as kept or as dropped.
		f.atLeast("ratio", measure.Ratio(all[1], all[0]), 0.8)
		return f
	})
}

// logging is a behavior whose function logs, and a meter that counts what becomes of the lines.
type logging struct {
	task.Behavior         // with the plans of noop
	logged, kept, dropped atomic.Int64
}

// ID implements task.Behavior.
func (*logging) ID() string { return "logs" }

// Run implements task.Behavior.
func (l *logging) Run(_ context.Context, a task.Attempt) task.Outcome {
	for i := range logsLines {
		a.Log.Info("a line of a task", "number", i)
	}
	l.logged.Add(logsLines)
	return task.Outcome{}
}

// settle waits until all lines are counted.
func (l *logging) settle(ctx context.Context) {
	for end := time.Now().Add(countedSoon); l.uncounted() != 0 && time.Now().Before(end); {
		pause(ctx, 10*time.Millisecond)
	}
}

func (l *logging) uncounted() int64 { return l.logged.Load() - l.kept.Load() - l.dropped.Load() }

// Count implements meter.Meter.
func (l *logging) Count(c meter.Counter, _ string, n int64) {
	switch c {
	case meter.LogLinesKept:
		l.kept.Add(n)
	case meter.LogLinesDropped:
		l.dropped.Add(n)
	}
}

// Observe implements meter.Meter.
func (*logging) Observe(meter.Histogram, string, []float64) {}

// Set implements meter.Meter.
func (*logging) Set(meter.Gauge, string, float64) {}
