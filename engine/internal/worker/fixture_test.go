package worker_test

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/logwriters"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/signal"
	"taskledger/engine/internal/slots"
	"taskledger/engine/internal/worker"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
)

// fixture is a worker in a session. The test is its node, what that sees of the cluster, and the owner of shard 0:
// what attempts report lies in the inbox.
type fixture struct {
	testing.TB
	exec    *worker.Executor
	logs    *logwriters.Writers // nil: no logs are kept
	offers  *worker.Offers
	session *worker.Session
	sender  *sender.Sender
	inbox   *inbox
	bus     *slowBus // not connected until the test says so
	host    *host
	cluster *cluster
	log     *logger
	now     func() time.Time // wall clock of the worker
	base    context.Context  // of the first session
	end     context.CancelCauseFunc
	stopped bool // by the test
	started events.Ref
}

const (
	selfID       = "n-1" // first session of the worker
	farID        = "far" // session of another node
	workBehavior = "work"
)

func newFixture(t testing.TB, most int, limits map[string]int, behaviors ...task.Behavior) *fixture {
	t.Helper()
	return newLogged(t, nil, most, limits, behaviors...)
}

// newLogged is newFixture with logs of attempts; nil = none are kept.
func newLogged(
	t testing.TB, logs tasklog.Store, most int, limits map[string]int, behaviors ...task.Behavior,
) *fixture {
	t.Helper()
	base, end := context.WithCancelCause(context.Background())
	w := &fixture{
		TB:      t,
		inbox:   &inbox{woken: signal.New()},
		bus:     new(slowBus),
		host:    new(host),
		cluster: &cluster{view: present(1, selfID, farID), there: map[int]backlog{}},
		log:     &logger{slog.DiscardHandler},
		now:     time.Now,
		base:    base,
		end:     end,
	}
	cfg := worker.Config{
		Behaviors: map[string]task.Behavior{},
		Slots:     most,
		Limits:    limits,
		Shards:    4,
		Now:       func() time.Time { return w.now() },
		Log:       slog.New(w.log),
		Value:     func(any) any { return nil },
	}
	for _, b := range behaviors {
		cfg.Behaviors[b.ID()] = b
	}
	w.sender = sender.New(sender.Config{
		ID:      "c-1",
		Shards:  cfg.Shards,
		Bus:     w.bus,
		Mailbox: noMailbox{},
		Now:     time.Now,
		Log:     cfg.Log,
	})
	cfg.Sender = w.sender
	if logs != nil {
		w.logs = logwriters.New(base, logwriters.Config{To: logs, Log: cfg.Log})
		cfg.Logs = w.logs
	}
	w.exec = worker.NewExecutor(cfg)
	w.offers = worker.NewOffers(w.exec)
	w.sender.Attach(w.offers)
	w.sender.ServeHere(0, w.inbox)
	w.begin(base, selfID)
	t.Cleanup(func() {
		end(nil)
		w.session.End()
		if !w.stopped {
			w.wantLeft(30*time.Second, 0, 0)
		}
		if w.logs != nil {
			w.logs.Stop(30 * time.Second)
		}
	})
	return w
}

// begin begins a session, which ends with ctx, in the place of the one before.
func (w *fixture) begin(ctx context.Context, id string) {
	w.session = worker.NewSession(ctx, id, 10*time.Second, w.host, w.cluster, slog.New(w.log))
	w.offers.Serve(w.session)
}

// wantLeft stops the worker, and asserts how many attempts and plans it leaves behind.
func (w *fixture) wantLeft(most time.Duration, attempts, plans int) {
	w.Helper()
	if a, p := w.exec.Stop(most); a != attempts || p != plans {
		w.Errorf("%d attempts and %d plans are left behind, want %d and %d", a, p, attempts, plans)
	}
}

// take takes a slot for whatever is ready of the behavior.
func (w *fixture) take(behavior string) bool {
	return w.exec.Take(nil, slots.Head{Behavior: behavior})
}

// launch makes an attempt of the behavior, for which there must be a slot.
func (w *fixture) launch(behavior string, policy task.Policy) events.Ref {
	w.Helper()
	return w.assign(command.Assignment{Behavior: behavior, Policy: policy})
}

// assign makes an attempt with a name of its own, for which there must be a slot.
func (w *fixture) assign(as command.Assignment) events.Ref {
	w.Helper()
	if !w.take(as.Behavior) {
		w.Fatalf("no slot for %s", as.Behavior)
	}
	w.started++
	as.AttemptName, as.Number = command.AttemptName{Task: "a", Started: w.started}, 1
	w.exec.Launch(w.session, 0, as)
	return w.started
}

// reported takes what attempts have reported, and acknowledges it.
func (w *fixture) reported() (all []command.Command) {
	for again := true; again; {
		again = false
		for _, d := range w.inbox.reports() {
			all = append(all, d.Commands...)
			d.reply(d.Batch, make([]command.Answer, len(d.Commands)), true)
			again = true
		}
	}
	return all
}

// outcome is the one outcome that was reported.
func (w *fixture) outcome() *command.Complete {
	w.Helper()
	all := w.reported()
	if len(all) != 1 {
		w.Fatalf("%d commands reported, want one outcome", len(all))
	}
	return all[0].(*command.Complete)
}

func (w *fixture) wantNothing(when string) {
	w.Helper()
	if all := w.reported(); len(all) != 0 {
		w.Fatalf("%s %+v was reported", when, all[0])
	}
}

// await waits for a signal, and ends the test when it does not come.
func await(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: not within 30s", what)
	}
}

// script is a behavior that runs a function of the test.
type script struct {
	id  string
	run func(ctx context.Context, a task.Attempt) task.Outcome
}

// ID implements task.Behavior.
func (s *script) ID() string { return s.id }

// Types implements task.Behavior.
func (s *script) Types() string { return "" }

// Policy implements task.Behavior.
func (s *script) Policy() task.Policy { return task.Policy{} }

// Plan implements task.Behavior.
func (s *script) Plan([]byte, time.Time) (task.Plan, error) { return task.Plan{}, nil }

// Run implements task.Behavior.
func (s *script) Run(ctx context.Context, a task.Attempt) task.Outcome { return s.run(ctx, a) }

// host is the node of a worker, which answers with its fields.
type host struct {
	old     atomic.Bool // the session is too old to take on work
	payload events.Payload
	err     error // of whoever reads a payload
	differ  bool  // another node runs every behavior with other types
}

// MayStart implements worker.Host.
func (h *host) MayStart() bool { return !h.old.Load() }

// Payload implements worker.Host.
func (h *host) Payload(context.Context, int, events.Ref) (events.Payload, error) {
	return h.payload, h.err
}

// TypesDiffer implements worker.Host.
func (h *host) TypesDiffer(string) bool { return h.differ }

// cluster shows the other nodes to a worker. It answers with its fields.
type cluster struct {
	view  *store.Membership
	here  map[string]int  // ready tasks of the shards that the node serves
	there map[int]backlog // of other shards
}

// backlog is the report of a shard's owner.
type backlog struct {
	owner string
	at    time.Time
	ready map[string]int
}

// present is a membership of the given sessions, in which the worker's node owns shard 0.
func present(revision int64, sessions ...string) *store.Membership {
	m := &store.Membership{
		Revision: revision,
		Nodes:    map[string]store.NodeInfo{},
		Owners:   map[int]store.Owner{0: {Node: selfID, Revision: 1}},
	}
	for _, id := range sessions {
		m.Nodes[id] = store.NodeInfo{ID: id, Name: id, Owner: id == selfID}
	}
	return m
}

// hear lets the owner of a shard tell now how many tasks are ready.
func (c *cluster) hear(shard int, owner string, ready int) {
	c.there[shard] = backlog{owner, time.Now(), map[string]int{workBehavior: ready}}
}

// View implements worker.Cluster.
func (c *cluster) View() *store.Membership { return c.view }

// ReadyHere implements worker.Cluster.
func (c *cluster) ReadyHere() map[string]int {
	ready := map[string]int{}
	maps.Copy(ready, c.here)
	return ready
}

// ReadyAt implements worker.Cluster.
func (c *cluster) ReadyAt(shard int, owner string, after time.Time) map[string]int {
	if b := c.there[shard]; b.owner == owner && b.at.After(after) {
		return b.ready
	}
	return nil
}

// delivered is a batch that has come into an inbox.
type delivered struct {
	*command.Batch
	reply sender.ReplyFunc
}

// inbox belongs to an owner in this process that takes batches when the test says so. It waits for slots, too.
type inbox struct {
	woken   signal.Signal
	mu      sync.Mutex
	here    *sender.Here
	batches []delivered
}

// Put implements sender.Inbox.
func (i *inbox) Put(b *command.Batch, reply sender.ReplyFunc) {
	i.mu.Lock()
	i.batches = append(i.batches, delivered{b, reply})
	i.mu.Unlock()
	i.woken.Notify()
}

// From implements sender.Inbox.
func (i *inbox) From(lanes *sender.Here) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.here = lanes
}

// Wake implements sender.Inbox and slots.Waiter.
func (i *inbox) Wake() { i.woken.Notify() }

// rung reports whether the owner was woken since it was asked last.
func (i *inbox) rung() bool {
	select {
	case <-i.woken:
		return true
	default:
		return false
	}
}

// reports empties the inbox, and returns the batches of what attempts and Reconciles report.
func (i *inbox) reports() (all []delivered) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, lane := range sender.LanesHere {
		if b, reply := i.here.Depart(i, lane, i.here.Now()); b != nil {
			i.batches = append(i.batches, delivered{b, reply})
		}
	}
	for _, d := range i.batches {
		if d.Lane == command.LaneWork {
			all = append(all, d)
		}
	}
	i.batches = nil
	return all
}

// noMailbox is a mailbox of a store that no writer posts to.
type noMailbox struct{ store.Mailbox }

// slowBus is a bus whose first call does not return before meanwhile has.
type slowBus struct {
	store.Bus
	calls     atomic.Int64
	meanwhile func()
}

// Publish implements store.Bus.
func (b *slowBus) Publish(string, string, []byte) error {
	if b.calls.Add(1) == 1 {
		b.meanwhile()
	}
	return nil
}

// logger is a log whose handler the test may replace.
type logger struct{ slog.Handler }
