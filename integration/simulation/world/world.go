package world

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/keepers"
	"taskledger/integration/simulation/record"
	"taskledger/integration/simulation/work"
	"taskledger/internal/modeletcd"
	"taskledger/internal/version"
	"taskledger/projection"
	"taskledger/store/memarchive"
)

const (
	nodes   = 3
	clients = 2
	// roomyWithin is how long after the last fault and the last call every task must have ended that can run, where nodes have many
	// slots; crowdedWithin where they have few, of all or of a behavior.
	roomyWithin   = 30 * time.Second
	crowdedWithin = 2 * time.Minute
	// hearWithin is how long after that those who wait for a task must have been told of its end: longer than the longest
	// time between two questions.
	hearWithin = 65 * time.Second
	// stillFor is for how long nothing happens when nothing is under way: longer than a message takes.
	stillFor = 3500 * time.Millisecond
	// tickEvery is how often the etcd leader looks for leases that have ended.
	tickEvery = 500 * time.Millisecond
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
	small  bool // the store is so small that snapshots become due early: the program is built to take them then
	roomy  bool // nodes have slots for everything
	crowd  bool // they have one or two
	long   bool // minutes follow in which little happens
	// archive is nil where the journals are kept whole.
	archive *memarchive.Archive
	// unwritable is that no node can write its session file.
	unwritable bool
	almost     atomic.Bool    // the store looks almost full
	damaged    atomic.Bool    // something is stored where an entry belongs
	late       sync.WaitGroup // requests that arrive when nobody waits for them any more
	record     *record.Record

	keepers *keepers.Keepers
	waits   sync.WaitGroup  // for futures
	patient context.Context // of the waits; giveUp ends it
	giveUp  context.CancelFunc

	mu      sync.Mutex
	nodes   [nodes]*process // nil while down
	clients [clients]*process
	swept   map[string]int64 // by sender that has gone: the revision after which its mail is left to a sweep
	busy    map[string]bool  // what a fault holds
	strange map[int64]bool   // revisions at which nobody of the cluster wrote
	busless string           // who has no bus for minutes, not even if it begins only then; "" = nobody
	wrong   time.Time        // when a clock was last far off
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
	if w.long {
		both.Wait()
		w.quiet()
	}
	w.record.Run.Info.Healed = w.record.Now()
	both.Wait()
	err := w.settle()
	w.hear()
	err = errors.Join(err, w.collect())
	w.depart()
	stopClock()
	w.remains(quiet)
	run := &w.record.Run
	run.Info.End, run.Info.EndWall = w.record.Now(), time.Now().UnixMilli()
	return run, err
}

func newWorld(seed uint64) *world {
	d := newDice(seed)
	w := &world{dice: d, shards: pick(d, 2, 4), etcd: modeletcd.New(time.Now), bus: newBus(d), record: &record.Record{Began: time.Now()},
		swept: map[string]int64{}, busy: map[string]bool{}, strange: map[int64]bool{}}
	w.roomy = d.chance(0.2)
	w.crowd = !w.roomy && d.chance(crowdShare)
	w.long = d.chance(quietShare)
	w.unwritable = d.chance(unwritableShare)
	w.patient, w.giveUp = context.WithCancel(context.Background())
	w.keepers = w.record.Keepers(w.patient, func() (*engine.Client, context.Context) {
		p := w.someClient()
		return p.client, p.killed
	})
	switch x := d.n(100); {
	case x < 3: // entries and snapshots are large, too
		w.shards, w.small, w.pad = 2, true, strings.Repeat("x", 64<<10)
	case x < 50:
		w.small = true
	}
	if archived := w.small && d.chance(0.9) || d.chance(0.1); archived || w.pad != "" { // large entries that stay would fill the store
		w.archive = memarchive.New()
	}
	w.record.Run.Info = history.Info{Kind: "simulated", Seed: seed, Command: fmt.Sprintf("go run ./integration/simulation replay %d", seed),
		Versions: []string{"taskledger " + version.Version, "etcd 3.7, modelled"}, Shards: w.shards, TTLMs: ttl.Milliseconds(),
		BoundMs: w.settleWithin().Milliseconds()}
	if d.chance(limitedShare) {
		w.record.Run.Info.Limits = map[string]int{pick(d, once, again, brief): 1 + d.n(2)}
	}
	return w
}

// settleWithin is how long after the last fault and the last call every task must have ended that can run.
func (w *world) settleWithin() time.Duration {
	if w.crowd || len(w.record.Run.Info.Limits) > 0 {
		return crowdedWithin
	}
	return roomyWithin
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

// settle waits until what was late has arrived, every node is ready, every task has ended that can, and nothing has changed
// for a while. What does not come to that is damage.
func (w *world) settle() error {
	w.late.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), w.settleWithin())
	defer cancel()
	for _, p := range w.nodes {
		if p == nil { // it did not begin again
			continue
		}
		select {
		case <-p.node.Ready():
		case <-ctx.Done():
			w.record.Damage(ended, "%s is not ready %s after the faults", p.name, w.settleWithin())
		}
	}
	var before uint64
	for last := time.Now(); time.Since(last) < stillFor; {
		tasks, err := w.tasks(ctx)
		w.endRepetitions(tasks)
		if events := work.EventsOf(tasks); err != nil || work.SomeWait(tasks) || events != before {
			last, before = time.Now(), events
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("the cluster does not settle: %w", err)
			}
			w.record.Damage(ended, "%s after the faults tasks have not ended, or go on: %s", w.settleWithin(), work.Waiting(tasks))
			return nil
		}
	}
	return nil
}

// endRepetitions cancels what would go on for ever.
func (w *world) endRepetitions(tasks []projection.Task) {
	for i := range tasks {
		if t := &tasks[i]; t.Kind.Policy.Every != 0 && !t.Final() && !t.Suspended && !t.Cancelled {
			w.caller().operate(w.clients[0], history.Cancel, string(t.ID))
		}
	}
}

// hear lets those who wait for a future hear of it. Who has not, although nothing happens any more, gives up.
func (w *world) hear() {
	timer := time.AfterFunc(hearWithin, w.giveUp)
	defer timer.Stop()
	w.waits.Wait()
}

// depart stops everybody in order and lets leases end.
func (w *world) depart() {
	w.late.Wait()
	var all sync.WaitGroup
	for _, p := range w.everybody() {
		all.Go(func() {
			p.leave()
			if p.err != nil {
				w.record.Damage(clean, "%s left with an error, in order and without a fault: %v", p.name, p.err)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.swept[p.port.mail()] = w.etcd.Revision() // what was under way may still arrive
		})
	}
	all.Wait()
	w.giveUp()
	w.late.Wait()
	w.bus.wait()
	time.Sleep(ttl + 2*time.Second)
}
