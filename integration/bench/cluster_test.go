package bench_test

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/internal/measure"
	"taskledger/task"
)

const (
	farAhead     = 24 * time.Hour // the time after which tasks are due that only wait
	loadInFlight = 64             // tasks of the load beside which, or with which, something is measured
	submitters   = 256            // goroutines that make what a measurement begins with
)

var noop = builtin.Noop()

// servers starts servers in this process, until the measurement ends; 0 shards are the default.
func servers(tb testing.TB, shards int) *measure.Servers {
	tb.Helper()
	return serve(tb, measure.Config{Shards: shards})
}

// serversApart starts servers, of which etcd is in a process of its own.
func serversApart(tb testing.TB, shards int) *measure.Servers {
	tb.Helper()
	etcd, endpoint := spawn(tb, "etcd"), ""
	check(tb, etcd.next(&endpoint))
	return serve(tb, measure.Config{Shards: shards, Etcd: endpoint, EtcdCPU: func() (used time.Duration, err error) {
		err = etcd.ask("cpu", &used)
		return used, err
	}})
}

func serve(tb testing.TB, cfg measure.Config) *measure.Servers {
	tb.Helper()
	s := must(measure.StartServers(tb.Context(), cfg))(tb)
	tb.Cleanup(func() { ended(tb, s.Close()) })
	return s
}

// serveEtcd is the role of a process with etcd on temporary data. It greets with its address, and answers each line
// with the processor time that it has used.
func serveEtcd(ctx context.Context, in *json.Decoder, out *json.Encoder) error {
	s, err := embedded.StartServers(ctx, embedded.ServersConfig{NoNATS: true, Log: measure.Discard})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := out.Encode(s.EtcdEndpoint()); err != nil {
		return err
	}
	for {
		var question string
		if err := in.Decode(&question); err != nil {
			return err
		}
		used, err := measure.CPU()
		if err != nil {
			return err
		}
		if err := out.Encode(used); err != nil {
			return err
		}
	}
}

// node starts a node, until the measurement ends.
func node(tb testing.TB, s *measure.Servers, cfg engine.NodeConfig, with ...measure.With) *measure.Node {
	tb.Helper()
	n := must(s.Start(tb.Context(), cfg, with...))(tb)
	tb.Cleanup(func() { ended(tb, n.Close()) })
	return n
}

// runs returns the configuration of a node that knows behaviors.
func runs(behaviors ...task.Behavior) engine.NodeConfig {
	return engine.NodeConfig{Behaviors: behaviors}
}

// pair starts two nodes, of which the other one runs noop tasks and those of further behaviors.
func pair(tb testing.TB, s *measure.Servers, inFlight int, further ...task.Behavior) *measure.Pair {
	tb.Helper()
	return pairOf(tb, s, inFlight, runs(noop), runs(append(further, noop)...))
}

func pairOf(
	tb testing.TB, s *measure.Servers, inFlight int, a, b engine.NodeConfig, with ...measure.With,
) *measure.Pair {
	tb.Helper()
	p := must(measure.StartPair(tb.Context(), s, inFlight, a, b, with...))(tb)
	tb.Cleanup(func() { ended(tb, p.Close()) })
	return p
}

// ended reports the error of an end.
func ended(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Error(err)
	}
}

// inParallel calls fn for 0 to n-1, by a number of goroutines.
func inParallel(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(submitters)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return fn(ctx, i) })
	}
	return g.Wait()
}

// fillWaiting submits noop tasks that only wait.
func fillWaiting(tb testing.TB, n *measure.Node, tasks int) {
	tb.Helper()
	o := task.SubmitOptions{NotBefore: time.Now().Add(farAhead)}
	check(tb, inParallel(tb.Context(), tasks, func(ctx context.Context, _ int) error {
		_, err := n.Submit(ctx, noop, nil, o)
		return err
	}))
}

// recorder collects durations.
type recorder struct {
	mu    sync.Mutex
	times []time.Duration
}

func (r *recorder) add(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times = append(r.times, d)
}

// take returns what was collected, sorted, and begins anew.
func (r *recorder) take() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	times := r.times
	r.times = nil
	slices.Sort(times)
	return times
}

// liveHeap returns the bytes of reachable memory.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the first one moves pools aside, the second one frees them
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
