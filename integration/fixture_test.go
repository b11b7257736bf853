package integration_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

const (
	// soon bounds what should come at once, on a slow and busy machine.
	soon = 5 * time.Minute
	// quiet is the time for which a test watches that something does not happen. It can only miss a fault, never invent
	// one.
	quiet = 300 * time.Millisecond
)

// withAndWithoutNATS runs a test on a cluster with NATS, and on one where it is absent for the whole run. Only what is
// killed loses its session.
func withAndWithoutNATS(t *testing.T, test func(t *testing.T, c *testcluster.Cluster)) {
	t.Helper()
	withTTL(t, 0, test)
}

// withTTL is the same with sessions of that TTL; 0 = 60 s.
func withTTL(t *testing.T, ttl time.Duration, test func(t *testing.T, c *testcluster.Cluster)) {
	t.Parallel()
	t.Run("nats", func(t *testing.T) {
		t.Parallel()
		test(t, testcluster.New(t, testcluster.Options{TTL: ttl}))
	})
	t.Run("no-nats", func(t *testing.T) {
		t.Parallel()
		test(t, testcluster.New(t, testcluster.Options{NoNATS: true, TTL: ttl}))
	})
}

// work is a behavior whose attempts tell the test that they run, and end as the test tells them.
type work struct {
	*behaviors.Behavior[string, string]
	started chan *run
	count   atomic.Int64 // attempts ever
}

// run is an attempt that waits for the test.
type run struct {
	node    string
	params  string
	ctx     context.Context
	attempt task.Attempt
	ends    chan ending
}

type ending struct {
	result string
	err    error
}

func defineWork(id string, rules *behaviors.Rules[string, string]) *work {
	return &work{Behavior: behaviors.Define(id, rules), started: make(chan *run, 10_000)}
}

// idFromParams names the task after its parameters, so that equal submits meet.
func idFromParams(p string) events.TaskID { return events.TaskID(p) }

// on is the behavior as the named node runs it. An attempt whose context ends before the test ends it returns the
// cause.
func (w *work) on(node string) task.Behavior {
	return w.Bind(func(ctx context.Context, params string) (string, error) {
		attempt, _ := behaviors.Attempt(ctx)
		r := &run{node: node, params: params, ctx: ctx, attempt: attempt, ends: make(chan ending, 1)}
		w.count.Add(1)
		w.started <- r
		select {
		case e := <-r.ends:
			return e.result, e.err
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
}

// next returns the next attempt that starts.
func (w *work) next(t *testing.T) *run {
	t.Helper()
	select {
	case r := <-w.started:
		return r
	case <-time.After(soon):
		t.Fatalf("no attempt of %s has started within %s", w.ID(), soon)
		return nil
	}
}

// nothing asserts that no attempt starts for a while.
func (w *work) nothing(t *testing.T) {
	t.Helper()
	select {
	case r := <-w.started:
		t.Errorf("attempt %d of task %s has started on %s", r.attempt.Number, r.attempt.Task, r.node)
	case <-time.After(quiet):
	}
}

func (r *run) succeed(result string) { r.ends <- ending{result: result} }
func (r *run) fail(err error)        { r.ends <- ending{err: err} }

// member is a node or a client.
type member interface {
	behaviors.Client
	Get(ctx context.Context, id events.TaskID) (task.Task, error)
}

// submit asks for work and fails the test when it is refused.
func (w *work) submit(t *testing.T, to behaviors.Client, params string) *behaviors.Future[string] {
	t.Helper()
	return w.submitWith(t, to, params, task.SubmitOptions{})
}

func (w *work) submitWith(t *testing.T, to behaviors.Client, params string, o task.SubmitOptions) *behaviors.Future[string] {
	t.Helper()
	f, err := w.SubmitWith(within(t, soon), to, params, o)
	if err != nil {
		t.Fatalf("submit %s to %s: %v", params, w.ID(), err)
	}
	return f
}

// within returns a context that ends after d or with the test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// want waits for a future and asserts its result.
func want[R comparable](t *testing.T, f *behaviors.Future[R], result R) {
	t.Helper()
	got, err := f.Wait(within(t, soon))
	if err != nil || got != result {
		t.Errorf("task %s: got %.100v, %v; want %.100v", f.ID(), got, err, result)
	}
}

// wantFailure waits for a future and asserts the code of its failure.
func wantFailure[R any](t *testing.T, f *behaviors.Future[R], code string) *task.Error {
	t.Helper()
	got, err := f.Wait(within(t, soon))
	failure, ok := errors.AsType[*task.Error](err)
	if !ok || failure.Code != code {
		t.Fatalf("task %s: got %v, %v; want failure %q", f.ID(), got, err, code)
	}
	return failure
}

// submitRaw submits again while etcd does not answer in time, as on a machine that is busy: nothing was submitted then.
func submitRaw(t *testing.T, c *engine.Client, behavior, params string, o task.SubmitOptions) *engine.Future {
	t.Helper()
	var f *engine.Future
	testcluster.Await(t, "a raw submit", func() (answered bool) {
		var err error
		if f, err = c.SubmitRaw(within(t, soon), behavior, []byte(params), o); errors.Is(err, store.ErrUnavailable) {
			t.Log(err)
			return false
		}
		ok(t, err)
		return true
	})
	return f
}

// pending asserts that a future stays open for a while.
func pending[R any](t *testing.T, f *behaviors.Future[R]) {
	t.Helper()
	select {
	case <-f.Done():
		r, err := f.Wait(t.Context())
		t.Errorf("task %s: has ended with %v, %v", f.ID(), r, err)
	case <-time.After(quiet):
	}
}

// awaitTask polls a task until it is as wanted.
func awaitTask(t *testing.T, at member, id events.TaskID, what string, holds func(task.Task) bool) task.Task {
	t.Helper()
	var last task.Task
	testcluster.Await(t, "task "+string(id)+" "+what, func() bool {
		task, err := at.Get(within(t, soon), id)
		last = task
		return err == nil && holds(task)
	})
	return last
}

// history returns the kinds of a task's events in order.
func history(t *testing.T, c *engine.Client, id events.TaskID) (kinds []string) {
	t.Helper()
	for ev, err := range c.Ledger().History(within(t, soon), id) {
		if err != nil {
			t.Fatalf("history of %s: %v", id, err)
		}
		kinds = append(kinds, ev.Kind().String())
	}
	return kinds
}

func count(kinds []string, kind string) (n int) {
	for _, k := range kinds {
		if k == kind {
			n++
		}
	}
	return n
}

// noSlots makes a node that owns shards and runs nothing.
func noSlots(cfg *engine.NodeConfig) { cfg.Slots = -1 }

// noShards makes a node that runs tasks and owns nothing.
func noShards(cfg *engine.NodeConfig) { cfg.Owner = new(bool) }
