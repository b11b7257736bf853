package bench_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/stores"
	"taskledger/events"
	"taskledger/internal/measure"
	"taskledger/internal/testkit"
	"taskledger/item"
	"taskledger/task"
)

const (
	storeGroup   = "work"
	itemBytes    = 100
	claimFor     = 30 * time.Second
	storeWorkers = 64   // workers who claim and replace items, and callers who submit tasks
	shallowDepth = 1000 // items of the store with which a deep one is compared
	parkedClaims = 1000 // wait on the other node for what never comes
	wakes        = 300  // counts the items that somebody waits for
)

// BenchmarkStore compares cycles, each a claim and an update that removes the item and adds one, with tasks of the same
// shard, and with cycles in a store of 1,000 items. Workers and callers are at the node that owns the shard, or at the
// other one; tasks run at the other one. Then it times claims that wait for items which are added one by one, alone and
// beside claims that wait on the other node.
func BenchmarkStore(b *testing.B) {
	// A task store at its owner's node: 0.9 cycles a task on a quiet machine, and 0.9 of the speed of a store of
	// 1,000 items.
	b.Run("owner=here", func(b *testing.B) {
		run(b, func(tb testing.TB) figures { return storeBeside(tb, false, 0.45, 0.6, 100) })
	})
	b.Run("owner=away", func(b *testing.B) {
		run(b, func(tb testing.TB) figures { return storeBeside(tb, true, 0, 0, math.Inf(1)) })
	})
}

func storeBeside(tb testing.TB, away bool, ratio, depthRatio, wakeMs float64) figures {
	s := startStored(tb, servers(tb, 0), storeWorkers, away)
	var tasks atomic.Int64
	submit := measure.Submit(s.Client, noop, func(int) task.SubmitOptions {
		return task.SubmitOptions{ID: events.TaskID(s.affinity + "/" + strconv.FormatInt(tasks.Add(1), 10))}
	})
	all := byTurns(tb, lasts(6*time.Second, 24*time.Second), measure.Closed(storeWorkers, 1, s.cycles(s.deep)),
		measure.Closed(storeWorkers, 1, submit), measure.Closed(storeWorkers, 1, s.cycles(s.shallow)))
	f := newFigures(tb)
	f.tasks("cycle", all[0].Sum())
	f.tasks("task", all[1].Sum())
	f.is("p99-ms", measure.Quantile(all[0].Sum().Times, 0.99))
	f.atLeast("ratio", measure.Ratio(all[0], all[1]), ratio)
	f.atLeast("depth-ratio", measure.Ratio(all[0], all[2]), depthRatio)
	alone := must(s.wakes(tb.Context()))(tb)
	unpark := s.park(tb.Context())
	pause(tb.Context(), 2*time.Second) // until all are registered
	beside, err := s.wakes(tb.Context())
	unpark()
	check(tb, err)
	f.is("wake-p50-ms", measure.Quantile(alone, 0.5))
	f.atMost("wake-p99-ms", measure.Quantile(alone, 0.99), wakeMs)
	f.atMost("beside-parked-wake-p99-ms", measure.Quantile(beside, 0.99), wakeMs)
	return f
}

// BenchmarkStoreHTTP compares cycles that a process of its own makes over HTTP with those of as many workers in the
// process of the nodes. The node with the API owns the store's shard, unless calls go over NATS.
func BenchmarkStoreHTTP(b *testing.B) {
	for _, c := range []struct {
		name, network string
		away          bool
		least         float64
	}{
		{"over=tcp", "tcp", false, 0.15}, // 0.4 of the cycles on a quiet machine
		{"over=unix", "unix", false, 0},
		{"over=tcp/owner=away", "tcp", true, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			run(b, func(tb testing.TB) figures { return storeOverHTTP(tb, c.network, c.away, c.least) })
		})
	}
}

func storeOverHTTP(tb testing.TB, network string, away bool, least float64) figures {
	const connections = 32
	on := servers(tb, 0)
	s, address := startStored(tb, on, connections, away), "127.0.0.1:0"
	if network == "unix" {
		address = on.SocketPath("api")
	}
	of := operations.Direct{Client: s.Client}
	at := serveAPI(tb, network, address, api.Config{
		Client:       of,
		Tokens:       tokens(onlyToken),
		Routes:       stores.Routes(of.Stores()),
		ErrorFormats: []api.ErrorFormat{stores.ErrorFormat()},
		Limits:       noLimits,
	})
	ask := asking{Network: network, Address: at.String(), Kind: "cycles", Store: s.deep, Connections: connections}
	all := byTurns(tb, lasts(4*time.Second, 12*time.Second),
		ask.side(spawn(tb, "caller")), measure.Closed(connections, 1, s.cycles(s.deep)))
	f := newFigures(tb)
	f.tasks("cycle", all[0].Sum())
	f.tasks("in-process-cycle", all[1].Sum())
	f.atLeast("ratio", measure.Ratio(all[0], all[1]), least)
	return f
}

// stored is a cluster of two nodes with two stores in one shard.
type stored struct {
	*measure.Pair
	deep, shallow string
	affinity      string // of tasks in the same shard
}

// startStored finds names in one shard, of the owner that is asked for, and fills the stores.
func startStored(tb testing.TB, on *measure.Servers, workers int, away bool) *stored {
	s := &stored{Pair: pair(tb, on, workers)}
	shards := must(s.Operations().Shards(tb.Context()))(tb)
	want := 0
	for want < len(shards) && strings.HasPrefix(shards[want].Owner, "a-") == away {
		want++
	}
	if want == len(shards) {
		tb.Fatal("the node owns no shard")
	}
	ofStore := func(name string) events.TaskID { return events.StoreItem(name, 1) }
	s.deep = nameIn(want, len(shards), "deep", ofStore)
	s.shallow = nameIn(want, len(shards), "shallow", ofStore)
	s.affinity = nameIn(want, len(shards), "tasks", taskNamed)
	check(tb, s.fill(tb.Context(), s.deep, testkit.Times(1000, 10_000)))
	check(tb, s.fill(tb.Context(), s.shallow, shallowDepth))
	return s
}

func taskNamed(name string) events.TaskID { return events.TaskID(name) }

// nameIn returns a name with a prefix whose id is in a shard.
func nameIn(shard, shards int, prefix string, id func(name string) events.TaskID) string {
	for i := 0; ; i++ {
		if name := prefix + strconv.Itoa(i); id(name).Shard(shards) == shard {
			return name
		}
	}
}

// fill adds the items that are there while cycles are measured.
func (s *stored) fill(ctx context.Context, store string, depth int) error {
	const atOnce = 500
	for n := 0; n < depth; n += atOnce {
		u := &item.Update{Client: 1}
		for range min(atOnce, depth-n) {
			u.Adds = append(u.Adds, item.Add{Group: storeGroup, Data: make([]byte, itemBytes)})
		}
		if _, err := s.Stores().Update(ctx, store, u); err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
	}
	return nil
}

// cycles returns the turn of a worker who claims an item, and removes it together with the addition of another.
func (s *stored) cycles(store string) measure.Op {
	data := make([]byte, itemBytes)
	return func(ctx context.Context, worker int) error {
		client := int64(worker + 1)
		got, err := s.Stores().Claim(ctx, store, &item.Claim{Client: client, Group: storeGroup, Duration: claimFor})
		if err != nil {
			return err
		}
		if got == nil {
			return errors.New("there was nothing to be claimed")
		}
		u := &item.Update{Client: client, Deletes: []int64{got.ID}, Adds: []item.Add{{Group: storeGroup, Data: data}}}
		_, err = s.Stores().Update(ctx, store, u)
		return err
	}
}

// claim waits for an item of a group.
func (s *stored) claim(ctx context.Context, of *measure.Node, client int64, group string) error {
	c := &item.Claim{
		Client:   client,
		Group:    group,
		Duration: claimFor,
		Wait:     item.MaxWait,
	}
	got, err := of.Stores().Claim(ctx, s.deep, c)
	if err == nil && got == nil {
		err = errNothing
	}
	return err
}

var errNothing = errors.New("a claim that waited got nothing")

// park begins claims on the other node for what never comes, and returns the function that ends them.
func (s *stored) park(ctx context.Context) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var parked sync.WaitGroup
	for i := range parkedClaims {
		parked.Go(func() {
			for errors.Is(s.claim(ctx, s.Other, int64(1000+i), "never there"), errNothing) {
			}
		})
	}
	return func() {
		stop()
		parked.Wait()
	}
}

// wakes adds items one by one that a claim waits for, and returns how long each took, sorted: from the call that adds
// it to the answer of the claim.
func (s *stored) wakes(ctx context.Context) ([]time.Duration, error) {
	const waited = "waited for"
	var took recorder
	for range wakes {
		claimed := make(chan error, 1)
		var when time.Time
		go func() {
			err := s.claim(ctx, s.Node, 1, waited)
			when = time.Now()
			claimed <- err
		}()
		pause(ctx, 5*time.Millisecond) // until it waits
		began := time.Now()
		_, err := s.Stores().Update(ctx, s.deep, &item.Update{Client: 2, Adds: []item.Add{{Group: waited}}})
		if err := errors.Join(err, <-claimed); err != nil {
			return nil, fmt.Errorf("wait for an item: %w", err)
		}
		took.add(when.Sub(began))
	}
	return took.take(), nil
}
