package world

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/internal/modeletcd"
	"taskledger/internal/version"
	"taskledger/store/memarchive"
)

const (
	// wholeCluster is the name that stands for every process.
	wholeCluster = "all"
	// roomyWithin bounds the time after the last fault and the last call within which every task that can run must have
	// ended, where nodes have many slots.
	roomyWithin = 30 * time.Second
	// crowdedWithin is the same bound where nodes have few slots, for all behaviors or for one.
	crowdedWithin = 2 * time.Minute
	// tickEvery is the time between two looks of the etcd leader for leases that have ended.
	tickEvery = 500 * time.Millisecond
)

// world is a cluster and its surroundings.
type world struct {
	setup
	dice    *dice
	etcd    *modeletcd.Model
	bus     *bus
	archive *memarchive.Archive // nil where the journals are kept whole
	almost  atomic.Bool         // the store looks almost full
	damaged atomic.Bool         // something is stored where an entry belongs
	late    sync.WaitGroup      // requests that arrive when nobody waits for them any more
	record  *recorder

	storeClients *traffic.StoreClients
	feeds        changeLogs
	waits        sync.WaitGroup  // for futures
	waitCtx      context.Context // of the waits; giveUp ends it
	giveUp       context.CancelFunc

	mu      sync.Mutex
	nodes   [nodes]*process // nil while down
	clients [clients]*process
	swept   map[string]int64 // by sender that has gone: the revision after which its mail is left to a sweep
	busy    map[string]bool  // by kind and target of a fault: it is in force
	strange map[int64]bool   // revisions at which nobody of the cluster wrote
	busless string           // the process that has no bus for minutes, even if it begins only then; "" = none
	wrong   time.Time        // when a clock was last far off
}

func newWorld(seed uint64) *world {
	d := newDice(seed)
	w := &world{
		setup:   drawSetup(d),
		dice:    d,
		etcd:    modeletcd.New(time.Now),
		bus:     newBus(d),
		record:  &recorder{Began: time.Now()},
		swept:   map[string]int64{},
		busy:    map[string]bool{},
		strange: map[int64]bool{},
	}
	if w.archived {
		w.archive = memarchive.New()
	}
	w.waitCtx, w.giveUp = context.WithCancel(context.Background())
	w.storeClients = w.record.StoreClients(w.waitCtx, func() (*engine.Client, context.Context) {
		p := w.someClient()
		return p.client, p.killed
	})
	w.record.Run.Info = history.Info{
		Kind:     "simulated",
		Seed:     seed,
		Command:  fmt.Sprintf("go run ./integration/simulation replay %d", seed),
		Versions: []string{"taskledger " + version.Version, "etcd 3.7, modelled"},
		Shards:   w.shards,
		TTLMs:    ttl.Milliseconds(),
		BoundMs:  w.settleWithin().Milliseconds(),
	}
	if d.chance(limitedShare) {
		w.record.Run.Info.Limits = map[string]int{pick(d, once, again, brief): 1 + d.n(2)}
	}
	return w
}

// settleWithin returns the time after the last fault and the last call within which every task that can run must have
// ended.
func (w *world) settleWithin() time.Duration {
	if w.crowd || len(w.record.Run.Info.Limits) > 0 {
		return crowdedWithin
	}
	return roomyWithin
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

// someClient draws a client or, now and then, a node that runs.
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

// node returns the node of the name, nil while it is down.
func (w *world) node(name string) *process { return w.nodes[name[len(name)-1]-'0'] }

// process returns the process of the name, nil while it is down, or when the name stands for everybody.
func (w *world) process(name string) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == wholeCluster {
		return nil
	}
	if strings.HasPrefix(name, "node-") {
		return w.node(name)
	}
	return w.clients[name[len(name)-1]-'0']
}

// targets returns the processes for which the name of a target stands.
func (w *world) targets(target string) []*process {
	if target == wholeCluster {
		return w.everybody()
	}
	if p := w.process(target); p != nil {
		return []*process{p}
	}
	return nil
}
