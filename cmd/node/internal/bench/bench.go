// Package bench measures the engine against the etcd that it stands on: in the same run, through the same kind of
// client.
package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/meter"
	"taskledger/task"
)

const (
	minWindow    = 2 * time.Second        // of engine or baseline: shorter ones mostly measure their neighbours
	warmUp       = 500 * time.Millisecond // of both, before the first window
	putWriters   = 64
	putBytes     = 256
	aloneFor     = time.Second // of the one writer whose latency is the baseline's
	perTaskSlots = 4           // slots of node B for each task in flight
)

// Config says what to measure.
type Config struct {
	InFlight int           // tasks; 1 or more
	Duration time.Duration // of all windows together; at least two windows are made
	Metered  bool          // both nodes tell a Prometheus meter what they do
	Servers  []string      // command line of the process that runs Serve, for etcd over gRPC; nil: etcd in this process
}

// Result holds the measured values. Times belong to engine windows unless they say baseline.
type Result struct {
	TasksPerS           float64 `json:"tasks_per_s"`
	BaselinePutsPerS    float64 `json:"baseline_puts_per_s"`
	Ratio               float64 `json:"ratio"` // median over pairs of neighbouring windows
	P50Ms               float64 `json:"p50_ms"`
	P99Ms               float64 `json:"p99_ms"`
	BaselineP50Ms       float64 `json:"baseline_p50_ms"` // of one writer alone
	CPUUsPerTask        float64 `json:"cpu_us_per_task"` // all threads of this process and of etcd's
	EtcdRequestsPerTask float64 `json:"etcd_requests_per_task"`
	InFlight            int     `json:"in_flight"`
	Nodes               int     `json:"nodes"`
	DurationS           float64 `json:"duration_s"`
	Tasks               int     `json:"tasks"`
	Client              string  `json:"client"` // inproc or grpc
}

// Run makes the closed loop: noop tasks submitted on node A, which has no slots, run on node B, resolved on A.
func Run(ctx context.Context, cfg Config) (r Result, err error) {
	s, err := startServers(ctx, cfg.Servers)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	meters, err := newMeters(cfg.Metered)
	if err != nil {
		return r, err
	}
	a, b, err := startPair(ctx, s, cfg.InFlight, meters)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, a.close(), b.close()) }()
	m := &measurement{servers: s, task: submitAndWait(a), inFlight: cfg.InFlight}
	if err := m.measure(ctx, cfg.Duration); err != nil {
		return r, err
	}
	r = m.result()
	r.Client = "inproc"
	if s.child != nil {
		r.Client = "grpc"
	}
	return r, nil
}

// startPair starts A, which submits and runs nothing, and B, which runs.
func startPair(ctx context.Context, s *servers, inFlight int, meters [2]meter.Meter) (a, b *node, err error) {
	return startNodes(ctx, s, inFlight, engine.NodeConfig{Meter: meters[0]}, meters[1])
}

// startNodes is startPair with a configuration of A, and other behaviors of B.
func startNodes(
	ctx context.Context, s *servers, inFlight int, ofA engine.NodeConfig, ofB meter.Meter, others ...task.Behavior,
) (a, b *node, err error) {
	linkA, err := s.link(ctx)
	if err != nil {
		return nil, nil, err
	}
	ofA.Name, ofA.Slots = "a", -1
	if a, err = startNode(ctx, linkA, ofA); err != nil {
		return nil, nil, err
	}
	linkB, err := s.link(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, a.close())
	}
	slots := max(512, perTaskSlots*inFlight)
	b, err = startNode(ctx, linkB, engine.NodeConfig{
		Name:      "b",
		Slots:     slots,
		Meter:     ofB,
		Behaviors: append([]task.Behavior{builtin.Noop()}, others...),
	})
	if err != nil {
		return nil, nil, errors.Join(err, a.close())
	}
	if err := settle(ctx, a, b); err != nil {
		return nil, nil, errors.Join(err, a.close(), b.close())
	}
	return a, b, nil
}

// submitAndWait is one turn of the engine's loop.
func submitAndWait(n *node) func(context.Context, int) error { return submitTo(n, builtin.Noop()) }

// submitTo is a turn of a loop of tasks of a behavior.
func submitTo(n *node, b task.Behavior) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		f, err := n.Submit(ctx, b, nil, task.SubmitOptions{})
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		if _, err := f.Wait(ctx); err != nil {
			return fmt.Errorf("wait for %s: %w", f.ID(), err)
		}
		return nil
	}
}

// measurement alternates windows of the engine with windows of its baseline.
type measurement struct {
	servers  *servers
	task     func(context.Context, int) error
	inFlight int

	engine, baseline []window
	alone            window
	cpu              time.Duration
	requests         uint64
}

func (m *measurement) measure(ctx context.Context, duration time.Duration) error {
	pairs := max(1, int(duration/(2*minWindow)))
	length := max(minWindow, duration/time.Duration(2*pairs))
	if _, err := closedLoop(ctx, m.inFlight, warmUp, m.task); err != nil {
		return err
	}
	if _, err := closedLoop(ctx, putWriters, warmUp, m.put); err != nil {
		return err
	}
	for range pairs {
		runtime.GC() // neither window pays for the other's garbage
		if err := m.engineWindow(ctx, length); err != nil {
			return err
		}
		runtime.GC()
		w, err := closedLoop(ctx, putWriters, length, m.put)
		if err != nil {
			return err
		}
		m.baseline = append(m.baseline, w)
	}
	var err error
	m.alone, err = closedLoop(ctx, 1, aloneFor, m.put)
	return err
}

func (m *measurement) engineWindow(ctx context.Context, length time.Duration) error {
	requests, err := m.servers.applied(ctx)
	if err != nil {
		return err
	}
	cpu, err := m.servers.cpu()
	if err != nil {
		return err
	}
	w, err := closedLoop(ctx, m.inFlight, length, m.task)
	if err != nil {
		return err
	}
	m.engine = append(m.engine, w)
	used, err := m.servers.cpu()
	if err != nil {
		return err
	}
	m.cpu += used - cpu
	now, err := m.servers.applied(ctx)
	m.requests += now - requests
	return err
}

// put is one turn of the baseline: a durable write of a key of the writer's own.
func (m *measurement) put(ctx context.Context, writer int) error {
	if _, err := m.servers.raw.Put(ctx, fmt.Sprintf("baseline/%02d", writer), strings.Repeat("v", putBytes)); err != nil {
		return fmt.Errorf("baseline put: %w", err)
	}
	return nil
}

func (m *measurement) result() Result {
	var tasks, puts int
	var engineTime, baselineTime time.Duration
	var ratios []float64
	var times []time.Duration
	for i, w := range m.engine {
		b := m.baseline[i]
		tasks, puts = tasks+w.count, puts+b.count
		engineTime, baselineTime = engineTime+w.took, baselineTime+b.took
		ratios = append(ratios, w.perSecond()/b.perSecond())
		times = append(times, w.times...)
	}
	slices.Sort(times)
	return Result{
		TasksPerS:           float64(tasks) / engineTime.Seconds(),
		BaselinePutsPerS:    float64(puts) / baselineTime.Seconds(),
		Ratio:               median(ratios),
		P50Ms:               quantile(times, 0.50),
		P99Ms:               quantile(times, 0.99),
		BaselineP50Ms:       quantile(m.alone.times, 0.50),
		CPUUsPerTask:        float64(m.cpu.Microseconds()) / float64(max(tasks, 1)),
		EtcdRequestsPerTask: float64(m.requests) / float64(max(tasks, 1)),
		InFlight:            m.inFlight,
		Nodes:               2,
		DurationS:           engineTime.Seconds(),
		Tasks:               tasks,
	}
}
