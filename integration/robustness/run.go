package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/record"
	"taskledger/integration/robustness/role"
	"taskledger/integration/robustness/traffic"
	"taskledger/projection"
)

const (
	slots = 64
	ttl   = 3 * time.Second // the shortest that nodes accept
	// endWithin is how long after the last fault every acknowledged task must have ended.
	endWithin = 60 * time.Second
	// warmWithin bounds how long traffic takes to flow.
	warmWithin = 30 * time.Second
	// enoughInFlight are waited for: until the second fault of a round begins, some of them end.
	enoughInFlight = 25
	// farAhead is when a task counts as scheduled for later, where a wrong clock may have done that.
	farAhead = 5 * time.Minute
	// smallQuota, in bytes, is that of members which are to be filled.
	smallQuota = 24 << 20
	// growingQuota, in bytes, is that of members whose shards are to grow until they take snapshots, and are trimmed: to about growingBytes in
	// all, by submits that carry growingPad more at most.
	growingQuota = 96 << 20
	growingBytes = 24 << 20
	growingPad   = 48 << 10
	// submitsPerSecond is about how many all clients make.
	submitsPerSecond = 40
)

// crowdedWithin is how long that may take where slots are few.
const crowdedWithin = 2 * time.Minute

// settings are those of one history.
type settings struct {
	seed     uint64
	nodes    int
	members  int
	slots    int           // of each node; 0 = drawn by the seed
	silent   bool          // nodes submit nothing
	duration time.Duration // of the time with faults
	kinds    []string      // of faults; none: drawn by the seed
	out      string        // directory, with a folder for each history
	command  string        // that repeats it
	program  string        // path of the one whose commands are typed; "" = nobody types
	beside   bool          // others are made at the same time: whose a goroutine is that remains, cannot be told
}

// run is one history in the making.
type run struct {
	*cluster
	settings settings
	plan     plan
	random   *rand.Rand
	recorder *record.Keys
	done     *record.Operations
	oracle   *record.Executions
	nodes    []*node
	clients  []*client
	terminal *terminal // nil where nobody types
	observer observer

	notes    sync.Mutex
	faults   []history.Fault
	problems []string
	damage   []history.Finding
	killed   []string        // sources of the processes of nodes and clients that could not clean up
	aliens   map[int]bool    // shards where an alien entry was written
	later    map[string]bool // tasks that a wrong clock has scheduled for much later
}

// makeHistory starts a cluster, disturbs it, heals it and collects what it leaves behind. What keeps it from that is among
// the problems of the history; there is none, and an error, only when not even its directory can be made.
func makeHistory(ctx context.Context, s settings) (h *history.Run, dir string, err error) {
	leaked := func() error { return nil }
	if !s.beside {
		before := goleak.IgnoreCurrent()
		leaked = func() error { return leakedSince(before) }
	}
	r, err := newRun(s)
	if err != nil {
		return nil, "", fmt.Errorf("history of seed %d: %w", s.seed, err)
	}
	h = &history.Run{Info: history.Info{Kind: "real", Seed: s.seed, Command: s.command, Versions: role.Versions(), Shards: record.Shards,
		TTLMs: ttl.Milliseconds(), BoundMs: r.bound().Milliseconds(), Limits: r.limits(), Planned: r.plan.kinds()}}
	err = errors.Join(r.make(ctx, h), ctx.Err())
	if err != nil && !errors.Is(err, errIdle) {
		r.problem("%v", err)
	}
	r.remains(h, leaked, err)
	return h, r.dir, nil
}

// dataDir is where servers keep their data, inside the directory of a history.
const dataDir = "data"

func newRun(s settings) (*run, error) {
	r := &run{settings: s, random: rand.New(rand.NewPCG(s.seed, 0)), done: record.NewOperations(), oracle: record.NewExecutions(), aliens: map[int]bool{},
		recorder: &record.Keys{}, later: map[string]bool{}}
	var err error
	if r.plan, err = newPlan(r.random, s); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.out, fmt.Sprint("seed-", s.seed))
	if err := os.MkdirAll(s.out, 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil { // servers would go on with what an earlier history has left
		return nil, err
	}
	r.cluster = &cluster{dir: dir, data: filepath.Join(dir, dataDir), begin: clock.Now()}
	return r, nil
}

// make goes through the phases of a history.
func (r *run) make(ctx context.Context, h *history.Run) error {
	watch, endWatch := context.WithCancel(ctx)
	defer r.recorder.Wait()
	defer endWatch()
	if err := r.start(ctx, watch); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	r.disturb(ctx)
	h.Info.Healed = clock.Since(r.begin)
	r.askAll(ctx)
	if h.Info.Commands = r.endTerminal(); h.Info.Commands == 0 && r.terminal != nil {
		r.problem("no command that was typed was answered")
	}
	err := errors.Join(r.endRequests(ctx), r.nameTasks(ctx), r.settle(ctx))
	r.awaitFutures(ctx)
	h.Info.End, h.Info.EndWall = clock.Since(r.begin), time.Now().UnixMilli()
	return errors.Join(err, r.collect(ctx, h))
}

// endRequests returns when clients and nodes have made their last request.
func (r *run) endRequests(ctx context.Context) error {
	no := false
	err := eachOf(r.clients, func(c *client) error {
		_, err := c.process.Order(ctx, role.Order{Submit: &no})
		return unlessReplaced(err)
	})
	return errors.Join(err, eachOf(r.nodes, func(n *node) error {
		_, err := n.running().Order(ctx, role.Order{Submit: &no})
		return unlessReplaced(err)
	}))
}

// start starts the servers, the recorder, the nodes and the clients; watch is the recorder's.
func (r *run) start(ctx, watch context.Context) error {
	if err := r.startServing(ctx, watch); err != nil {
		return err
	}
	for i := range 2 {
		if err := r.newClient(i); err != nil {
			return err
		}
	}
	if err := r.startTerminal(); err != nil {
		return err
	}
	return eachOf(r.clients, func(c *client) error { return r.startClient(ctx, c) })
}

// startServing starts all but the clients.
func (r *run) startServing(ctx, watch context.Context) error {
	quota := int64(0)
	if r.pad() > 0 {
		quota = growingQuota
	}
	if r.plan.needs(needQuota) {
		quota = smallQuota
	}
	if err := startCluster(ctx, r.cluster, r.settings.members, quota, r.plan.nats()); err != nil {
		return err
	}
	r.recorder.Start(watch, r.begin, r.observers())
	for i := range r.settings.nodes {
		if err := r.newNode(i); err != nil {
			return err
		}
	}
	err := eachOf(r.nodes, func(n *node) error {
		if err := r.startNode(n); err != nil {
			return err
		}
		return r.awaitNode(ctx, n)
	})
	if err != nil {
		return err
	}
	return r.startObserver(ctx)
}

// crowded reports whether every node has few slots: in every fourth history.
func (r *run) crowded() bool { return r.settings.seed%4 == 1 }

// slotsOf is how many slots a node has: few each where it is crowded, elsewhere one has many.
func (r *run) slotsOf(i int) int {
	random := rand.New(rand.NewPCG(r.settings.seed, uint64(i)))
	few := []int{1, 2, runtime.NumCPU()}
	switch {
	case r.settings.slots > 0:
		return r.settings.slots
	case r.crowded():
		return few[random.IntN(len(few))]
	case i == 0:
		return slots
	}
	return append(few, slots, slots)[random.IntN(len(few)+2)]
}

// limits are how many attempts of a behavior a node makes at once, where a fault needs that.
func (r *run) limits() map[string]int {
	if r.plan.needs(needLimits) {
		return map[string]int{"again": 2}
	}
	return nil
}

// bound is how long after the last fault every acknowledged task must have ended.
func (r *run) bound() time.Duration {
	if r.crowded() {
		return crowdedWithin
	}
	return endWithin
}

// pad is how many bytes submits carry in vain: in every other history so many that shards take snapshots, unless etcd is to
// be filled otherwise, or would be, since nothing is archived for minutes.
func (r *run) pad() int {
	if r.settings.seed%2 == 1 || r.plan.needs(needQuota) || slices.Contains(r.plan.kinds(), history.BusAwayKind) {
		return 0
	}
	return min(growingPad, int(growingBytes/(submitsPerSecond*(1+r.settings.duration/time.Second))))
}

// archives reports whether nodes trim the journals, of what NATS then keeps: where these grow, and it is there.
func (r *run) archives() bool { return r.pad() > 0 && r.plan.nats() != natsAbsent }

func (r *run) problem(format string, args ...any) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// broken notes what the product failed at.
func (r *run) broken(invariant, format string, args ...any) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.damage = append(r.damage, history.Finding{Invariant: invariant, Text: fmt.Sprintf(format, args...)})
}

// warmUp waits until there is enough traffic for a fault to meet.
func (r *run) warmUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmWithin)
	defer cancel()
	before := r.done.Answered()
	for r.done.Answered()-before < check.LeastAnswered || r.inFlight() < enoughInFlight {
		if clock.Sleep(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return // the checkers find that there was too little
		}
	}
}

// askAll submits a task of every shard when the faults have healed: each must be accepted within the bound, and end like any
// other.
func (r *run) askAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	var asking sync.WaitGroup
	for shard := range record.Shards {
		asking.Go(func() {
			c := r.clients[shard%len(r.clients)]
			request := traffic.Request{Verb: history.Submit, Task: taskOf(shard), Params: traffic.Params{Millis: 1}}
			for !r.done.Acknowledged(request.Task) {
				if ctx.Err() != nil {
					r.broken(check.Ended, "shard %d took no submit for %s after the faults", shard, endWithin)
					return
				}
				if err := c.ask(ctx, request); err != nil && ctx.Err() == nil {
					r.problem("after the faults: %v", err)
					return
				}
				clock.Sleep(ctx, 50*time.Millisecond)
			}
		})
	}
	asking.Wait()
}

// taskOf returns a task of a shard, that nobody else submits.
func taskOf(shard int) string { return idIn("after", shard) }

// idIn returns an id of a shard that begins so.
func idIn(prefix string, shard int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint(prefix, "-", i); events.TaskID(id).Shard(record.Shards) == shard {
			return id
		}
	}
}

// settle resumes what is suspended, and waits until every task has ended that can.
func (r *run) settle(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.bound())
	defer cancel()
	stepped := slices.ContainsFunc(r.faults, stepsClock)
	waiting := r.done.Tasks()
	for len(waiting) > 0 && ctx.Err() == nil && err == nil {
		var left []string
		var mu sync.Mutex
		r.look(ctx, waiting, func(id string, t *projection.Task, failed error) {
			var unasked error
			if failed == nil && t != nil && t.Suspended {
				if unasked = r.clients[0].ask(ctx, traffic.Request{Verb: history.Resume, Task: id}); ctx.Err() != nil {
					unasked = nil // it is too late anyway
				}
			}
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, unasked)
			switch {
			case failed != nil, t != nil && (t.Suspended || t.OnNode()):
				left = append(left, id)
			case t == nil || t.Due == 0:
			case stepped && time.Until(t.Due.Time()) > farAhead:
				r.later[id] = true
			default:
				left = append(left, id)
			}
		})
		if waiting = left; len(waiting) > 0 {
			clock.Sleep(ctx, 100*time.Millisecond)
		}
	}
	if err != nil {
		return err
	}
	for _, id := range waiting {
		r.broken(check.Ended, "task %s has not ended, or is not shown, %s after the faults", id, r.bound())
	}
	return nil
}

// futuresWithin is how long futures may take to hear of an outcome when every hint was lost: they ask after 5 s, then less
// and less often, at least once a minute.
const futuresWithin = 70 * time.Second

// awaitFutures waits until every future has been told, those aside whose tasks are scheduled for much later. Those that have
// heard nothing by then are untold.
func (r *run) awaitFutures(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, futuresWithin)
	defer cancel()
	for ctx.Err() == nil {
		untold := slices.DeleteFunc(r.done.Waited(), func(id string) bool { return r.later[id] })
		if len(untold) == 0 {
			return
		}
		clock.Sleep(ctx, 50*time.Millisecond)
	}
}

// looks is how many tasks are looked at at a time.
const looks = 8

// look reads tasks linearly and calls f for each, several at a time; t is nil when there is no such task.
func (r *run) look(ctx context.Context, ids []string, f func(id string, t *projection.Task, err error)) {
	var next atomic.Int64
	_ = eachOf(make([]struct{}, looks), func(struct{}) error {
		for i := int(next.Add(1)) - 1; i < len(ids); i = int(next.Add(1)) - 1 {
			ask, cancel := context.WithTimeout(ctx, callWithin)
			t, err := r.observer.GetLinear(ask, events.TaskID(ids[i]))
			cancel()
			switch {
			case errors.Is(err, engine.ErrNotFound):
				f(ids[i], nil, nil)
			default:
				f(ids[i], &t, err)
			}
		}
		return nil
	})
}
