package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/role"
	"taskledger/integration/robustness/traffic"
	"taskledger/projection"
)

const (
	shards = 8
	slots  = 64
	ttl    = 3 * time.Second // the shortest that nodes accept
	// endWithin is how long after the last fault every acknowledged task must have ended.
	endWithin = 60 * time.Second
	// warmWithin bounds how long traffic takes to flow.
	warmWithin = 30 * time.Second
	// minOperations and minInFlight are the least that a run must have answered, and that must be under way when a fault
	// begins: with less it proves nothing.
	minOperations = 50
	minInFlight   = 10
	// enoughInFlight are waited for: until the second fault of a round begins, some of them end.
	enoughInFlight = 25
	// farAhead is when a task counts as scheduled for later: a wrong clock does that.
	farAhead = 5 * time.Minute
	// smallQuota, in bytes, is that of members which are to be filled.
	smallQuota = 24 << 20
)

// settings are those of one history.
type settings struct {
	seed     uint64
	nodes    int
	members  int
	duration time.Duration // of the time with faults
	kinds    []string      // of faults; none: drawn by the seed
	out      string        // directory, with a folder for each history
	command  string        // that repeats it
}

// run is one history in the making.
type run struct {
	*cluster
	settings settings
	plan     plan
	random   *rand.Rand
	recorder *recorder
	done     *operations
	oracle   *oracle
	nodes    []*node
	clients  []*client
	log      *os.File // of the clients

	notes    sync.Mutex
	faults   []history.Fault
	problems []string
	killed   bool            // a node was, and could not clean up
	damage   []string        // that this program, or the engine itself, finds at the end
	later    map[string]bool // tasks that a wrong clock has scheduled for much later
}

// makeHistory starts a cluster, disturbs it, heals it and collects what it leaves behind. The error says that it could
// not be made; the run is then nil.
func makeHistory(ctx context.Context, s settings) (h *history.Run, dir string, err error) {
	before := goleak.IgnoreCurrent()
	r, err := newRun(s)
	if err != nil {
		return nil, "", err
	}
	h = &history.Run{}
	err = errors.Join(r.make(ctx, h), ctx.Err())
	r.remains(h, before, err)
	h.Info.Problems = r.problems
	if err != nil {
		return nil, r.dir, fmt.Errorf("history of seed %d: %w", s.seed, err)
	}
	return h, r.dir, nil
}

// dataDir is where servers keep their data, inside the directory of a history.
const dataDir = "data"

func newRun(s settings) (*run, error) {
	r := &run{settings: s, random: rand.New(rand.NewPCG(s.seed, 0)), done: newOperations(), oracle: newOracle(),
		recorder: &recorder{}, later: map[string]bool{}}
	var err error
	if r.plan, err = newPlan(r.random, s); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.out, fmt.Sprint("seed-", s.seed))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r.cluster = &cluster{dir: dir, data: filepath.Join(dir, dataDir), begin: clock.Now()}
	return r, nil
}

// make goes through the phases of a history.
func (r *run) make(ctx context.Context, h *history.Run) error {
	watch, endWatch := context.WithCancel(ctx)
	defer r.recorder.watching.Wait()
	defer endWatch()
	if err := r.start(ctx, watch); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	submit, endSubmit := context.WithCancel(ctx)
	wait, endWait := context.WithCancel(ctx)
	defer endSubmit()
	defer endWait()
	for _, c := range r.clients {
		c.send(submit, wait, r.settings.seed)
	}
	r.disturb(ctx)
	healed := now(r.begin)
	endSubmit()
	for _, c := range r.clients {
		c.calling.Wait()
	}
	no := false
	if err := eachOf(r.nodes, func(n *node) error {
		_, err := n.running().order(ctx, role.Order{Submit: &no})
		return err
	}); err != nil {
		return err
	}
	r.settle(ctx)
	r.awaitFutures(ctx)
	endWait()
	for _, c := range r.clients {
		c.waiting.Wait()
	}
	h.Info = history.Info{Kind: "real", Seed: r.settings.seed, Command: r.settings.command, Versions: role.Versions(), Shards: shards,
		TTLMs: ttl.Milliseconds(), BoundMs: endWithin.Milliseconds(), Healed: healed, End: now(r.begin), EndWall: time.Now().UnixMilli()}
	return r.collect(ctx, h)
}

// start starts the servers, the recorder, the nodes and the clients; watch is the recorder's.
func (r *run) start(ctx, watch context.Context) error {
	quota := int64(0)
	if r.plan.needs(needQuota) {
		quota = smallQuota
	}
	if err := startCluster(ctx, r.cluster, r.settings.members, quota, r.plan.nats()); err != nil {
		return err
	}
	r.recorder.start(watch, r.members)
	for i := range r.settings.nodes {
		if err := r.newNode(i); err != nil {
			return err
		}
	}
	log, err := os.Create(filepath.Join(r.dir, "clients.log"))
	if err != nil {
		return err
	}
	r.log = log
	err = eachOf(r.nodes, func(n *node) error {
		if err := r.startNode(n); err != nil {
			return err
		}
		return r.awaitNode(ctx, n)
	})
	if err != nil {
		return err
	}
	for i := range 2 {
		l, err := r.newLinks()
		if err != nil {
			return err
		}
		c, err := startClient(ctx, fmt.Sprint("client", i+1), l, shards, r.done, r.begin, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			return err
		}
		r.clients = append(r.clients, c)
	}
	return nil
}

func (r *run) problem(format string, args ...any) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// warmUp waits until there is enough traffic for a fault to meet.
func (r *run) warmUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmWithin)
	defer cancel()
	for r.done.answered() < minOperations || r.inFlight() < enoughInFlight {
		if sleep(ctx, 20*time.Millisecond); ctx.Err() != nil {
			r.problem("%d operations were answered and %d tasks are in flight after %s", r.done.answered(), r.inFlight(), warmWithin)
			return
		}
	}
}

// settle resumes what is suspended, and waits until every task has ended that can.
func (r *run) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	waiting := r.done.tasks()
	for len(waiting) > 0 && ctx.Err() == nil {
		var left []string
		var mu sync.Mutex
		r.look(ctx, waiting, func(id string, t *projection.Task, err error) {
			if err == nil && t != nil && t.Suspended {
				r.clients[0].call(ctx, r.done.number(), traffic.Request{Verb: history.Resume, Task: id})
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil || t != nil && (t.Suspended || runs(t)) {
				left = append(left, id)
			} else if t != nil && t.Due != 0 {
				r.later[id] = true
			}
		})
		if waiting = left; len(waiting) > 0 {
			sleep(ctx, 100*time.Millisecond)
		}
	}
}

// futuresWithin is how long futures may take to hear of an outcome when every hint was lost: they ask after 5 s, then less
// and less often, at least once a minute.
const futuresWithin = 70 * time.Second

// awaitFutures waits until every future has been told, those aside whose tasks are scheduled for much later.
func (r *run) awaitFutures(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, futuresWithin)
	defer cancel()
	for ctx.Err() == nil {
		untold := slices.DeleteFunc(r.done.waited(), func(id string) bool { return r.later[id] })
		if len(untold) == 0 {
			return
		}
		sleep(ctx, 50*time.Millisecond)
	}
	for _, id := range slices.DeleteFunc(r.done.waited(), func(id string) bool { return r.later[id] }) {
		r.damage = append(r.damage, fmt.Sprintf("a future of task %s was told nothing for %s after all tasks had ended", id, futuresWithin))
	}
}

// runs reports whether a task runs, or will soon.
func runs(t *projection.Task) bool {
	return t.OnNode() || t.Due != 0 && time.Until(t.Due.Time()) < farAhead
}

// looks is how many tasks are looked at at a time.
const looks = 8

// look reads tasks linearly and calls f for each, several at a time; t is nil when there is no such task.
func (r *run) look(ctx context.Context, ids []string, f func(id string, t *projection.Task, err error)) {
	var next atomic.Int64
	_ = eachOf(make([]struct{}, looks), func(struct{}) error {
		for i := int(next.Add(1)) - 1; i < len(ids); i = int(next.Add(1)) - 1 {
			ask, cancel := context.WithTimeout(ctx, callWithin)
			t, err := r.clients[i%len(r.clients)].GetLinear(ask, events.TaskID(ids[i]))
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
