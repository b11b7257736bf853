package bench_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/internal/measure"
	"taskledger/internal/testkit"
	"taskledger/task"
)

const (
	httpConnections = 64
	httpBatchers    = 4 // connections, or callers, that submit batches
	httpHealthy     = 8 // connections whose requests are timed beside idle ones
)

var noLimits = api.Limits{PerSecond: 1e6, Burst: 1e6, InFlight: 1e6}

// BenchmarkHTTP compares tasks that a process of its own submits over HTTP, and waits for, with those of as many
// callers in the process of the nodes: one by one, and in batches. Then it times requests beside idle connections,
// which are a further process's. Processor time counts the nodes, the servers and the API.
func BenchmarkHTTP(b *testing.B) { run(b, overHTTP) }

func overHTTP(tb testing.TB) figures {
	p := pair(tb, servers(tb, 0), httpConnections)
	at := serveAPI(tb, "tcp", "127.0.0.1:0", api.Config{
		Client: operations.Direct{Client: p.Client},
		Tokens: tokens(onlyToken),
		Limits: noLimits,
	})
	caller := spawn(tb, "caller")
	ask := asking{Network: at.Network(), Address: at.String(), Kind: "tasks", Connections: httpConnections}
	total := lasts(4*time.Second, 8*time.Second)
	single, here := ask.side(caller), loadOf(p.Node, httpConnections)
	warm(tb, single)
	all := byTurns(tb, total, here, single)
	bare := bareSide(tb, caller, all[0].Sum().PerSecond())
	bareOnce := must(bare(tb.Context(), measure.MinWindow))(tb)
	batches := byTurns(tb, total, measure.Closed(httpBatchers, batchTasks, func(ctx context.Context, _ int) error {
		return batchHere(ctx, p)
	}), asking{Network: at.Network(), Address: at.String(), Kind: "batches", Connections: httpBatchers}.side(caller))
	// A task over HTTP beside one in the process, and batches of 1,000: 0.4 and 0.7 of the rate on a quiet machine.
	f := newFigures(tb)
	f.tasks("task", all[1].Sum())
	f.tasks("in-process-task", all[0].Sum())
	f.is("extra-cpu-us/task", all[1].Sum().CPUEach()-all[0].Sum().CPUEach())
	f.is("bare-cpu-us/request", bareOnce.CPUEach())
	f.is("batch-task/s", batches[1].Sum().PerSecond())
	f.is("in-process-batch-task/s", batches[0].Sum().PerSecond())
	f.atLeast("ratio", measure.Ratio(all[1], all[0]), 0.2)
	f.atLeast("batch-ratio", measure.Ratio(batches[1], batches[0]), 0.2)
	ask.Connections = httpHealthy
	ask.besideIdle(tb, caller, f)
	return f
}

// bareSide returns the side of requests to a server of net/http alone: it waits as long as a task does, and answers
// with a constant.
func bareSide(tb testing.TB, caller *child, tasksPerS float64) measure.Side {
	l := must(net.Listen("tcp", "127.0.0.1:0"))(tb)
	takes := time.Duration(httpConnections / tasksPerS * float64(time.Second))
	answer := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(takes)
		_, _ = io.WriteString(w, `{"id":"bpq5wq2ahv6oxk4jwrbuipz2pe","status":"SUCCESS","result":null}`)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(answer)}
	var g errgroup.Group
	g.Go(func() error {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	tb.Cleanup(func() { ended(tb, errors.Join(s.Close(), g.Wait())) })
	return asking{Network: "tcp", Address: l.Addr().String(), Kind: "tasks", Connections: httpConnections}.side(caller)
}

// batchHere submits a batch in this process, and waits for its last task.
func batchHere(ctx context.Context, p *measure.Pair) error {
	requests := make([]task.Request, batchTasks)
	for i := range requests {
		requests[i].Behavior = noop
	}
	results := p.SubmitMany(ctx, requests, task.ManyOptions{})
	for _, one := range results {
		if one.Err != nil {
			return one.Err
		}
	}
	_, err := results[len(results)-1].Wait(ctx)
	return err
}

// besideIdle compares the times of requests with those beside connections that do nothing.
func (o asking) besideIdle(tb testing.TB, caller *child, f figures) {
	alone, _, err := o.order(caller, measure.MinWindow)
	check(tb, err)
	idle := o
	idle.Kind, idle.Connections, idle.Idle = "health", testkit.Times(100, 2000), true
	held, _, err := idle.order(spawn(tb, "caller"), 0)
	check(tb, err)
	beside, _, err := o.order(caller, measure.MinWindow)
	check(tb, err)
	f.is("idle-connections", float64(held.Count))
	f.is("p99-ms", alone.P99Ms)
	f.is("beside-idle-p99-ms", beside.P99Ms)
	f.atMost("beside-idle-ratio", beside.P99Ms/alone.P99Ms, 4)
}
