// Package overstore measures task stores against tasks of the same shard.
package overstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/bench"
	"taskledger/events"
	"taskledger/item"
	"taskledger/task"
)

const (
	group   = "work"
	waited  = "waited for"
	idle    = "never there"
	payload = 100              // bytes of an item
	held    = 30 * time.Second // how long a claim lasts
	wakes   = 300              // items that somebody waits for
	shallow = 1000             // items of the store that deep ones are compared with
)

// Config says how.
type Config struct {
	Duration time.Duration // of all windows together; at least four are made
	Workers  int           // who claim and replace items, and who submit tasks
	Depth    int           // items that are there
	Parked   int           // claims that wait on the other node for what never comes
	Away     bool          // the store's owner is the other node: every call goes over NATS
	Unix     bool          // the HTTP client uses a Unix socket instead of TCP
}

// Result holds the cost of cycles. A cycle is a claim, and an update that removes the item and adds one.
type Result struct {
	CyclesPerS  float64 `json:"cycles_per_s"`
	TasksPerS   float64 `json:"tasks_per_s"` // of the same shard, as many callers
	Ratio       float64 `json:"ratio"`       // median over pairs of neighbouring windows
	CPUUs       float64 `json:"cpu_us_per_cycle"`
	TaskUs      float64 `json:"cpu_us_per_task"`
	DepthRatio  float64 `json:"depth_ratio"` // of cycles in a store of 1,000 items; median over neighbouring windows
	P99Ms       float64 `json:"cycle_p99_ms"`
	WakeP50Ms   float64 `json:"wake_p50_ms"` // from the call that adds an item to the answer of the claim that waits for it
	WakeP99Ms   float64 `json:"wake_p99_ms"`
	BesideP99Ms float64 `json:"wake_beside_parked_p99_ms"` // the same beside parked claims on the other node
	Parked      int     `json:"parked"`
	Depth       int     `json:"depth"`
}

// Bounds holds the worst values that a result may have; zero bounds nothing.
type Bounds struct {
	Ratio      float64
	DepthRatio float64
	Wake       time.Duration // p99, alone and beside parked claims
}

// Within returns an error that names the bound which a result breaks.
func (r *Result) Within(b Bounds) error {
	switch {
	case r.Ratio < b.Ratio:
		return fmt.Errorf("ratio %.2f is below the %.2f asked for", r.Ratio, b.Ratio)
	case r.DepthRatio < b.DepthRatio:
		return fmt.Errorf("ratio %.2f to a store of %d items is below the %.2f asked for", r.DepthRatio, shallow, b.DepthRatio)
	case b.Wake > 0 && max(r.WakeP99Ms, r.BesideP99Ms) > float64(b.Wake.Microseconds())/1000:
		return fmt.Errorf("a parked claim is answered after %.1f ms, beside others after %.1f, above the %s allowed", r.WakeP99Ms, r.BesideP99Ms, b.Wake)
	}
	return nil
}

// Run measures a store on two nodes.
func Run(ctx context.Context, cfg Config) (r Result, err error) {
	pair, err := bench.StartPair(ctx, cfg.Workers)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	m := measurement{pair: pair, cfg: cfg, data: make([]byte, payload)}
	r.Depth, r.Parked = cfg.Depth, cfg.Parked
	if err := m.begin(ctx); err != nil {
		return r, err
	}
	if err := m.fill(ctx, m.shallow, shallow); err != nil {
		return r, err
	}
	if err := m.cycles(ctx, &r); err != nil {
		return r, err
	}
	return r, m.waits(ctx, &r)
}

type measurement struct {
	pair     *bench.Pair
	cfg      Config
	data     []byte
	store    string
	shallow  string // a store in the same shard
	affinity string // of the tasks: that of the store's shard
	tasks    atomic.Int64
}

// begin finds names in one shard, of the owner that the configuration asks for, and fills the store.
func (m *measurement) begin(ctx context.Context) error {
	shards, err := m.pair.Operations().Shards(ctx)
	if err != nil {
		return err
	}
	want := 0
	for want < len(shards) && m.pair.OwnsHere(shards[want].Owner) == m.cfg.Away {
		want++
	}
	if want == len(shards) {
		return errors.New("the node owns no shard")
	}
	ofStore := func(name string) events.TaskID { return events.StoreItem(name, 1) }
	m.store = nameIn(want, len(shards), "deep", ofStore)
	m.shallow = nameIn(want, len(shards), "shallow", ofStore)
	m.affinity = nameIn(want, len(shards), "tasks", func(name string) events.TaskID { return events.TaskID(name) })
	return m.fill(ctx, m.store, m.cfg.Depth)
}

// nameIn returns a name with a prefix whose id is in a shard.
func nameIn(shard, shards int, prefix string, id func(name string) events.TaskID) string {
	for i := 0; ; i++ {
		if name := prefix + strconv.Itoa(i); id(name).Shard(shards) == shard {
			return name
		}
	}
}

// fill adds the items that are there while cycles are measured.
func (m *measurement) fill(ctx context.Context, store string, depth int) error {
	const atOnce = 500
	for n := 0; n < depth; n += atOnce {
		u := &item.Update{Client: 1}
		for range min(atOnce, depth-n) {
			u.Adds = append(u.Adds, item.Add{Group: group, Data: m.data})
		}
		if _, err := m.pair.Stores().Update(ctx, store, u); err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
	}
	return nil
}

// cycle claims an item, and removes it together with the addition of another.
func (m *measurement) cycle(ctx context.Context, worker int) error {
	return m.cycleOf(ctx, m.store, worker)
}

func (m *measurement) cycleOf(ctx context.Context, store string, worker int) error {
	client := int64(worker + 1)
	got, err := m.pair.Stores().Claim(ctx, store, &item.Claim{Client: client, Group: group, Duration: held})
	if err != nil {
		return err
	}
	if got == nil {
		return errors.New("there was nothing to be claimed")
	}
	_, err = m.pair.Stores().Update(ctx, store, &item.Update{Client: client, Deletes: []int64{got.ID}, Adds: []item.Add{{Group: group, Data: m.data}}})
	return err
}

var noop = builtin.Noop()

// submit makes a task of the store's shard and waits for it.
func (m *measurement) submit(ctx context.Context, _ int) error {
	id := events.TaskID(m.affinity + "/" + strconv.FormatInt(m.tasks.Add(1), 10))
	f, err := m.pair.Submit(ctx, noop, nil, task.SubmitOptions{ID: id})
	if err != nil {
		return err
	}
	_, err = f.Wait(ctx)
	return err
}

// cycles compares cycles with tasks, by windows in turn.
func (m *measurement) cycles(ctx context.Context, r *Result) error {
	window := max(2*time.Second, m.cfg.Duration/12)
	var ratios, depthRatios []float64
	var cycles, tasks, shallow counted
	inShallow := func(ctx context.Context, worker int) error { return m.cycleOf(ctx, m.shallow, worker) }
	for range max(2, int(m.cfg.Duration/(3*window))) {
		a, err := m.count(ctx, window, m.cycle, &cycles)
		if err != nil {
			return fmt.Errorf("cycle: %w", err)
		}
		b, err := m.count(ctx, window, m.submit, &tasks)
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		c, err := m.count(ctx, window, inShallow, &shallow)
		if err != nil {
			return fmt.Errorf("cycle: %w", err)
		}
		ratios, depthRatios = append(ratios, a/b), append(depthRatios, a/c)
	}
	r.DepthRatio = bench.Median(depthRatios)
	r.CyclesPerS, r.TasksPerS, r.Ratio = cycles.perSecond(), tasks.perSecond(), bench.Median(ratios)
	r.CPUUs, r.TaskUs, r.P99Ms = cycles.perOne(), tasks.perOne(), cycles.p99
	return nil
}

// counted sums the operations of some windows.
type counted struct {
	n         int
	took, cpu time.Duration
	p99       float64 // of the last one
}

func (c *counted) perSecond() float64 { return float64(c.n) / c.took.Seconds() }
func (c *counted) perOne() float64    { return float64(c.cpu.Microseconds()) / float64(c.n) }

// count does op for a window, and returns how often a second.
func (m *measurement) count(ctx context.Context, window time.Duration, op func(context.Context, int) error, c *counted) (float64, error) {
	before, err := bench.CPU()
	if err != nil {
		return 0, err
	}
	n, took, p99, err := bench.Loop(ctx, m.cfg.Workers, window, op)
	if err != nil {
		return 0, err
	}
	after, err := bench.CPU()
	c.n, c.took, c.cpu, c.p99 = c.n+n, c.took+took, c.cpu+after-before, p99
	return float64(n) / took.Seconds(), err
}

// waits measures how long an item takes to who waits for it.
func (m *measurement) waits(ctx context.Context, r *Result) error {
	alone, err := m.wakes(ctx)
	if err != nil {
		return err
	}
	parking, stop := context.WithCancel(ctx)
	var parked sync.WaitGroup
	for i := range m.cfg.Parked {
		parked.Go(func() {
			for parking.Err() == nil {
				if _, err := m.pair.Other().Stores().Claim(parking, m.store, &item.Claim{Client: int64(1000 + i), Group: idle, Duration: held, Wait: item.MaxWait}); err != nil {
					return
				}
			}
		})
	}
	defer parked.Wait()
	defer stop()
	time.Sleep(2 * time.Second) // until all are registered
	beside, err := m.wakes(ctx)
	if err != nil {
		return err
	}
	r.WakeP50Ms, r.WakeP99Ms, r.BesideP99Ms = at(alone, 0.5), at(alone, 0.99), at(beside, 0.99)
	return nil
}

func at(sorted []time.Duration, q float64) float64 {
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Microseconds()) / 1000
}

// wakes adds items one by one that a parked claim waits for, and returns what each took, sorted.
func (m *measurement) wakes(ctx context.Context) (took []time.Duration, err error) {
	for range wakes {
		claimed := make(chan error, 1)
		var when time.Time
		go func() {
			got, err := m.pair.Stores().Claim(ctx, m.store, &item.Claim{Client: 1, Group: waited, Duration: held, Wait: item.MaxWait})
			if when = time.Now(); err == nil && got == nil {
				err = errors.New("a parked claim got nothing")
			}
			claimed <- err
		}()
		time.Sleep(5 * time.Millisecond) // until it is parked
		began := time.Now()
		if _, err := m.pair.Stores().Update(ctx, m.store, &item.Update{Client: 2, Adds: []item.Add{{Group: waited}}}); err != nil {
			return nil, errors.Join(err, <-claimed)
		}
		if err := <-claimed; err != nil {
			return nil, fmt.Errorf("wait for an item: %w", err)
		}
		took = append(took, when.Sub(began))
	}
	slices.Sort(took)
	return took, nil
}
