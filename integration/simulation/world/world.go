package world

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"taskledger/engine"
	"taskledger/integration/robustness/history"
	"taskledger/internal/modeletcd"
)

const (
	nodes   = 3
	clients = 2
	// settleWithin is how long after the last fault every task must have ended that can run.
	settleWithin = 60 * time.Second
	// stillFor is for how long nothing happens when nothing is under way: longer than a message takes.
	stillFor = 3500 * time.Millisecond
	// tickEvery is how often the etcd leader looks for leases that have ended.
	tickEvery = 100 * time.Millisecond
	// beginWithin bounds how long a node takes to begin.
	beginWithin = 30 * time.Second
)

// world is a cluster and its surroundings.
type world struct {
	dice   *dice
	shards int
	pad    string // makes parameters large
	etcd   *modeletcd.Model
	bus    *bus
	shelf  *shelf         // nil: the journals are kept whole
	late   sync.WaitGroup // requests that arrive when nobody waits for them any more
	record *record

	mu       sync.Mutex
	nodes    [nodes]*process // nil while down
	clients  [clients]*process
	swept    map[string]int64 // by sender that has gone: the revision after which its mail is left to a sweep
	busy     map[string]bool  // what a fault holds
	problems []string
}

// Run makes the history of a seed. The error says that the simulation itself failed.
func Run(seed uint64) (*history.Run, error) {
	w := newWorld(seed)
	quiet := goroutines()
	if err := w.populate(); err != nil {
		return nil, err
	}
	stopClock := w.beginClock()
	var both sync.WaitGroup
	both.Go(w.traffic)
	w.faults()
	w.record.run.Info.Healed = w.record.now()
	both.Wait()
	err := errors.Join(w.settle(), w.collect())
	w.depart()
	stopClock()
	w.remains(quiet)
	run := &w.record.run
	run.Info.End, run.Info.EndWall = w.record.now(), time.Now().UnixMilli()
	run.Info.Problems = append(run.Info.Problems, w.problems...)
	return run, err
}

func newWorld(seed uint64) *world {
	d := newDice(seed)
	w := &world{dice: d, shards: pick(d, 2, 4), etcd: modeletcd.New(time.Now), bus: newBus(d), record: &record{began: time.Now()},
		swept: map[string]int64{}, busy: map[string]bool{}}
	if d.chance(0.05) { // journals grow long enough for snapshots and trims
		w.shards, w.pad = 2, strings.Repeat("x", 64<<10)
	}
	if w.pad != "" || d.chance(0.3) {
		w.shelf = newShelf()
	}
	w.record.run.Info = history.Info{Kind: "simulated", Seed: seed, Command: fmt.Sprintf("go run ./integration/simulation replay %d", seed),
		Versions: []string{"taskledger " + engine.Version, "etcd 3.7, modelled"}, Shards: w.shards, TTLMs: ttl.Milliseconds(),
		BoundMs: settleWithin.Milliseconds()}
	return w
}

// populate begins all processes, and returns when the nodes are ready.
func (w *world) populate() error {
	for i := range w.nodes {
		p, err := w.begin(fmt.Sprintf("node-%d", i), true)
		if err != nil {
			return err
		}
		w.nodes[i] = p
	}
	for i := range w.clients {
		p, err := w.begin(fmt.Sprintf("client-%d", i), false)
		if err != nil {
			return err
		}
		w.clients[i] = p
	}
	for _, p := range w.nodes {
		select {
		case <-p.node.Ready():
		case <-time.After(beginWithin):
			return fmt.Errorf("%s is not ready", p.name)
		}
	}
	return nil
}

// beginClock lets leases end, until stop is called.
func (w *world) beginClock() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(tickEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				w.etcd.Tick()
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// someClient is a client or, now and then, a node that runs.
func (w *world) someClient() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.nodes[w.dice.n(nodes)]; p != nil && w.dice.chance(0.3) {
		return p
	}
	return w.clients[w.dice.n(clients)]
}

// everybody returns the processes that run.
func (w *world) everybody() (all []*process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.nodes {
		if p != nil {
			all = append(all, p)
		}
	}
	return append(all, w.clients[:]...)
}

// problem notes why the history proves nothing.
func (w *world) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// settle waits until what was late has arrived, every task has ended that can, and nothing has changed for a while.
func (w *world) settle() error {
	w.late.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), settleWithin)
	defer cancel()
	var before uint64
	for last := time.Now(); time.Since(last) < stillFor; {
		tasks, err := w.tasks(ctx)
		if events := eventsOf(tasks); err != nil || someWait(tasks) || events != before {
			last, before = time.Now(), events
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("the cluster does not settle: %w", err)
			}
			return nil // the checkers will find those that have not ended
		}
	}
	return nil
}

// depart stops everybody in order and lets leases end.
func (w *world) depart() {
	w.late.Wait()
	var all sync.WaitGroup
	for _, p := range w.everybody() {
		all.Go(func() {
			p.leave()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.swept[p.port.mail()] = w.etcd.Revision() // what was under way may still arrive
		})
	}
	all.Wait()
	w.late.Wait()
	w.bus.wait()
	time.Sleep(ttl + 2*time.Second)
}
