package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/repeat"
	"taskledger/internal/testcluster"
	"taskledger/projection"
	"taskledger/store"
)

// TestMain lets many tests run side by side: those with clusters mostly wait for sessions to end.
func TestMain(m *testing.M) {
	repeat.AtOnce(12)
	goleak.VerifyTestMain(m)
}

const (
	// soon bounds what should come at once, on a slow and busy machine.
	soon = 2 * time.Minute
	// quiet is how long a test watches that something does not happen. It can only miss a fault, never invent one.
	quiet = 300 * time.Millisecond
)

// lanes, as reply subjects tell them.
const (
	laneSubmit = "0"
	laneWork   = "1"
	laneQuery  = "2"
	laneOffer  = "3"
)

// job is a behavior whose attempts tell the test that they run, and end as the test tells them.
type job struct {
	policy   engine.Policy
	stubborn bool // attempts ignore the end of their context
	runs     chan *run
	count    atomic.Int64 // attempts ever
}

// run is an attempt that waits for the test.
type run struct {
	engine.Attempt
	ctx  context.Context
	ends chan engine.Outcome
}

func newJob(p engine.Policy) *job { return &job{policy: p, runs: make(chan *run, 10_000)} }

func (j *job) ID() string            { return "job" }
func (j *job) Types() string         { return "" }
func (j *job) Policy() engine.Policy { return j.policy }
func (j *job) Plan([]byte, time.Time) (engine.Plan, error) {
	return engine.Plan{}, nil
}

func (j *job) Run(ctx context.Context, a engine.Attempt) engine.Outcome {
	r := &run{a, ctx, make(chan engine.Outcome, 1)}
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
		return engine.Outcome{Err: &events.Error{Code: events.CodeFailed, Message: context.Cause(ctx).Error()}}
	}
}

func (r *run) succeed(result string) { r.ends <- engine.Outcome{Result: []byte(result)} }

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
	Submit(ctx context.Context, b engine.Behavior, params []byte, o engine.SubmitOptions) (*engine.Future, error)
}

func (j *job) submit(t *testing.T, to submitter, id events.TaskID) *engine.Future {
	t.Helper()
	f, err := to.Submit(within(t), j, nil, engine.SubmitOptions{ID: id})
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
func awaitTask(t *testing.T, c *engine.Client, id events.TaskID, what string, holds func(projection.Task) bool) projection.Task {
	t.Helper()
	var last projection.Task
	testcluster.Await(t, fmt.Sprintf("task %s %s", id, what), func() bool {
		task, err := c.Get(within(t), id)
		last = task
		return err == nil && holds(task)
	})
	return last
}

func isRunning(task projection.Task) bool { return task.OnNode() }

// cfg shortens the configuration of nodes.
type cfg = engine.NodeConfig

// noSlots makes a node that owns shards and runs nothing; noShards one that runs tasks and owns nothing.
func noSlots(c *cfg)  { c.Slots = -1 }
func noShards(c *cfg) { c.Owner = new(bool) }

// with applies several changes of a configuration.
func with(changes ...func(*cfg)) func(*cfg) {
	return func(c *cfg) {
		for _, change := range changes {
			change(c)
		}
	}
}

// fate is what becomes of a message.
type fate int

const (
	pass fate = iota
	drop
	twice
	hold // until release
)

// wire is what lies between a node and the others, its way through the store included, with fates that a test decides.
// Messages are known by their lane: batches by their reply subject, answers by their subject.
type wire struct {
	sent     func(lane string) fate // of batches to owners, by bus and store
	answered func(lane string) fate // of answers from the owner here, by bus and store
	heard    func(lane string) fate // of answers that come for the sender here, by bus only
	hinted   func(subject string) fate

	busSent, busAnswered func(lane string) fate // of those, by bus only

	cut bool // the bus is not connected

	mu   sync.Mutex
	held []func()
}

// through puts the wire between a node and its cluster.
func (w *wire) through(c *cfg) {
	c.Store = &wiredStore{c.Store, w}
	if c.Bus != nil {
		c.Bus = &wiredBus{c.Bus, w}
	}
}

// release lets go of what was held.
func (w *wire) release() {
	w.mu.Lock()
	held := w.held
	w.held = nil
	w.mu.Unlock()
	for _, deliver := range held {
		deliver()
	}
}

// holding is the number of messages held.
func (w *wire) holding() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
}

// suffer gives a message its fate.
func (w *wire) suffer(decide func(string) fate, key string, deliver func() error) error {
	f := pass
	if decide != nil {
		f = decide(key)
	}
	switch f {
	case drop:
		return nil
	case twice:
		return errors.Join(deliver(), deliver())
	case hold:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.held = append(w.held, func() { _ = deliver() })
		return nil
	}
	return deliver()
}

type wiredBus struct {
	store.Bus
	w *wire
}

// lane returns the lane of a subject node.<sender>.<shard>.<lane>.<number>; "" of others.
func lane(subject string) string {
	if parts := strings.Split(subject, "."); len(parts) == 5 && parts[0] == "node" {
		return parts[3]
	}
	return ""
}

func (b *wiredBus) Publish(subject, reply string, data []byte) error {
	data = slices.Clone(data)
	deliver := func() error { return b.Bus.Publish(subject, reply, data) }
	switch {
	case b.w.cut:
		return errors.New("not connected")
	case strings.HasPrefix(subject, "shard."):
		return b.w.suffer(b.w.sent, lane(reply), func() error { return b.w.suffer(b.w.busSent, lane(reply), deliver) })
	case lane(subject) != "":
		return b.w.suffer(b.w.answered, lane(subject), func() error { return b.w.suffer(b.w.busAnswered, lane(subject), deliver) })
	}
	return b.w.suffer(b.w.hinted, subject, deliver)
}

func (b *wiredBus) Subscribe(ctx context.Context, subject, queue string, h func(store.Message)) error {
	if b.w.cut {
		return nil
	}
	return b.Bus.Subscribe(ctx, subject, queue, func(m store.Message) {
		_ = b.w.suffer(b.w.heard, lane(m.Subject), func() error { h(m); return nil })
	})
}

func (b *wiredBus) Notify(ctx context.Context, h func(bool)) error {
	if b.w.cut {
		h(false)
		return nil
	}
	return b.Bus.Notify(ctx, h)
}

type wiredStore struct {
	store.Store
	w *wire
}

func (s *wiredStore) Post(ctx context.Context, shard int, sender string, lane uint8, batch []byte) error {
	return s.w.suffer(s.w.sent, fmt.Sprint(lane), func() error {
		return s.Store.Post(context.WithoutCancel(ctx), shard, sender, lane, batch)
	})
}

func (s *wiredStore) Answer(ctx context.Context, l store.MailboxBatch, answer []byte) error {
	return s.w.suffer(s.w.answered, fmt.Sprint(l.Lane), func() error {
		return s.Store.Answer(context.WithoutCancel(ctx), l, answer)
	})
}

// only gives the messages of one lane a fate, while the switch is on.
func only(on *atomic.Bool, lane string, f fate) func(string) fate {
	return func(of string) fate {
		if on.Load() && of == lane {
			return f
		}
		return pass
	}
}

// watched is a store whose membership watch a test can silence, and whose reads it counts.
type watched struct {
	store.Store
	silent atomic.Bool
	reads  atomic.Int64 // that have ended
}

func (s *watched) under(c *cfg) {
	s.Store = c.Store
	c.Store = s
}

func (s *watched) ReadMembers(ctx context.Context) (store.Membership, error) {
	defer s.reads.Add(1)
	return s.Store.ReadMembers(ctx)
}

func (s *watched) WatchMembers(ctx context.Context) iter.Seq2[store.Membership, error] {
	return func(yield func(store.Membership, error) bool) {
		for m, err := range s.Store.WatchMembers(ctx) {
			if !s.silent.Load() && !yield(m, err) {
				return
			}
		}
	}
}
