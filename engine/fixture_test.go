package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

const (
	// soon bounds what should come at once, on a slow and busy machine.
	soon = 2 * time.Minute
	// quiet is the time for which a test watches that something does not happen. It can only miss a fault, never
	// invent one.
	quiet = 300 * time.Millisecond
)

// job is a behavior whose attempts tell the test that they run, and end as the test tells them.
type job struct {
	policy   task.Policy
	stubborn bool // attempts ignore the end of their context
	runs     chan *run
	count    atomic.Int64 // attempts ever
}

// run is an attempt that waits for the test.
type run struct {
	task.Attempt
	ctx  context.Context
	ends chan task.Outcome
}

func newJob(p task.Policy) *job { return &job{policy: p, runs: make(chan *run, 10_000)} }

func (j *job) ID() string { return "job" }

func (j *job) Types() string { return "" }

func (j *job) Policy() task.Policy { return j.policy }

func (j *job) Plan([]byte, time.Time) (task.Plan, error) {
	return task.Plan{}, nil
}

func (j *job) Run(ctx context.Context, a task.Attempt) task.Outcome {
	r := &run{a, ctx, make(chan task.Outcome, 1)}
	j.count.Add(1)
	j.runs <- r
	ended := ctx.Done()
	if j.stubborn {
		ended = nil
	}
	select {
	case o := <-r.ends:
		return o
	case <-ended:
		return task.Outcome{Err: &events.Error{Code: events.CodeFailed, Message: context.Cause(ctx).Error()}}
	}
}

func (r *run) succeed(result string) { r.ends <- task.Outcome{Result: []byte(result)} }

// next returns the next attempt that starts.
func (j *job) next(t *testing.T) *run {
	t.Helper()
	select {
	case r := <-j.runs:
		return r
	case <-time.After(soon):
		t.Fatalf("no attempt has started within %s", soon)
		return nil
	}
}

// nothing asserts that no attempt starts for a while.
func (j *job) nothing(t *testing.T) {
	t.Helper()
	select {
	case r := <-j.runs:
		t.Errorf("attempt %d of task %s has started", r.Number, r.Task)
	case <-time.After(quiet):
	}
}

// submitter is a node or a client.
type submitter interface {
	Submit(ctx context.Context, b task.Behavior, params []byte, o task.SubmitOptions) (*engine.Future, error)
}

func (j *job) submit(t *testing.T, to submitter, id events.TaskID) *engine.Future {
	t.Helper()
	f, err := to.Submit(within(t), j, nil, task.SubmitOptions{ID: id})
	if err != nil {
		t.Fatalf("submit %s: %v", id, err)
	}
	return f
}

// Short names of what other packages' tests use as well.
var (
	within    = testcluster.Within
	idIn      = testcluster.IDIn
	runNode   = testcluster.RunNode
	runClient = testcluster.RunClient
)

func want(t *testing.T, f *engine.Future, result string) {
	t.Helper()
	got, err := f.Wait(within(t))
	if err != nil || string(got) != result {
		t.Errorf("task %s: got %s, %v; want %s", f.ID(), got, err, result)
	}
}

// history returns the kinds of a task's events in order.
func history(t *testing.T, c *engine.Client, id events.TaskID) string {
	t.Helper()
	var kinds []string
	for ev, err := range c.Ledger().History(within(t), id) {
		if err != nil {
			t.Fatalf("history of %s: %v", id, err)
		}
		kinds = append(kinds, ev.Kind().String())
	}
	return strings.Join(kinds, " ")
}

func wantHistory(t *testing.T, c *engine.Client, id events.TaskID, kinds string) {
	t.Helper()
	if got := history(t, c, id); got != kinds {
		t.Errorf("history of %s is %s, want %s", id, got, kinds)
	}
}

// awaitTask polls a task until it is as wanted.
func awaitTask(t *testing.T, c *engine.Client, id events.TaskID, what string, holds func(task.Task) bool) task.Task {
	t.Helper()
	var last task.Task
	testcluster.Await(t, fmt.Sprintf("task %s %s", id, what), func() bool {
		task, err := c.Get(within(t), id)
		last = task
		return err == nil && holds(task)
	})
	return last
}

func isRunning(task task.Task) bool { return task.OnNode() }

// cfg shortens the configuration of nodes.
type cfg = engine.NodeConfig

// noSlots makes a node that owns shards and runs nothing; noShards one that runs tasks and owns nothing.
func noSlots(c *cfg) { c.Slots = -1 }

func noShards(c *cfg) { c.Owner = new(bool) }

// with applies several changes of a configuration.
func with(changes ...func(*cfg)) func(*cfg) {
	return func(c *cfg) {
		for _, change := range changes {
			change(c)
		}
	}
}

// nodeKey is the presence of a session.
func nodeKey(session string) string { return "taskledger/node/" + session }

// endSession revokes a node's lease, as etcd may do although it has just renewed it, and waits until the node has
// begun another session.
func endSession(t *testing.T, c *testcluster.Cluster, n *testcluster.Node) {
	t.Helper()
	old := n.SessionID()
	got, err := c.Etcd.Get(within(t), nodeKey(old))
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("node key of %s: %v, %v", old, got, err)
	}
	leases, err := c.Etcd.Leases(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases.Leases {
		if int64(l.ID) == got.Kvs[0].Lease {
			if _, err := c.Etcd.Revoke(within(t), l.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	testcluster.Await(t, "a new session", func() bool { id := n.SessionID(); return id != "" && id != old })
}

// awaitLetter waits until a standing offer lies in the mailbox of shard 0.
func awaitLetter(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	testcluster.Await(t, "a batch in the mailbox", func() bool { return c.Batches(0) == 1 })
}
