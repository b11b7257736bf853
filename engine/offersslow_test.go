package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/modeletcd"
	"taskledger/store"
)

// Without a bus an offer and its answer take six requests, one after another. However slow these are, and however many shards
// want the few slots of the only node that runs anything, or most of it, it is given work about as fast as offers travel.
func TestOffers_BringWorkThroughASlowStore(t *testing.T) {
	t.Parallel()
	const tasks, slots = 24, 2
	for _, c := range []struct {
		request time.Duration
		shards  int // that have ready tasks
		owners  int // slots of the node that serves them; -1: none
	}{
		{50 * time.Millisecond, 4, -1}, {150 * time.Millisecond, 4, -1}, {250 * time.Millisecond, 4, -1}, {350 * time.Millisecond, 4, -1},
		{250 * time.Millisecond, 1, -1}, {250 * time.Millisecond, 4, 1},
	} {
		t.Run(fmt.Sprintf("%s a request, %d shards, %d slots at their owner", c.request, c.shards, c.owners), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModelled(t, false)
				m.ways = map[string]modeletcd.Transport{"owner": modeletcd.Slow(c.request), "worker": modeletcd.Slow(c.request)}
				here, there := newJob(engine.Policy{}), newJob(engine.Policy{})
				owner := m.start("owner", 0, func(cfg *cfg) { cfg.Slots = c.owners }, here)
				owner.ready(t)
				m.start("worker", 0, func(cfg *cfg) { cfg.Slots = slots; noShards(cfg) }, there).ready(t)
				for i := range tasks {
					here.submit(t, owner, events.TaskID(fmt.Sprintf("%s/%d", idIn(i%c.shards, modelledShards), i)))
				}
				var running atomic.Int64
				most, began, last := int64(0), time.Now(), time.Now()
				for started := range tasks {
					var r *run
					ended := func() {}
					select {
					case r = <-here.runs:
					case r = <-there.runs:
						last, most = time.Now(), max(most, running.Add(1))
						ended = func() { running.Add(-1) }
					case <-time.After(25*c.request - time.Since(last)):
						t.Fatalf("%d of %d tasks have started, and none at the worker for %s", started, tasks, time.Since(last))
					}
					if r.Number != 1 {
						t.Errorf("%s was given away in vain before attempt %d", r.Task, r.Number)
					}
					time.AfterFunc(2*c.request, func() {
						ended()
						r.succeed("1")
					})
				}
				if took := time.Since(began); took > 10*tasks*c.request || most != slots {
					t.Errorf("%d tasks started within %s, %d at a time; want %s at most, and %d", tasks, took, most, 10*tasks*c.request, slots)
				}
			})
		})
	}
}

// Others answer over the bus within milliseconds. An owner off the bus, which nobody hears there or whose link is cut without
// a word, is not judged by that: it has an offer when its letter is written.
func TestOffers_BringWorkOfAnOwnerThatOnlyASlowStoreReaches(t *testing.T) {
	t.Parallel()
	const tasks, slots = 8, 2
	for _, c := range []struct {
		request time.Duration
		silent  bool
	}{{150 * time.Millisecond, false}, {150 * time.Millisecond, true}, {350 * time.Millisecond, false}, {350 * time.Millisecond, true}} {
		t.Run(fmt.Sprintf("%s a request, silent %t", c.request, c.silent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModelled(t, true)
				m.ways = map[string]modeletcd.Transport{"off": modeletcd.Slow(c.request), "worker": modeletcd.Slow(c.request)}
				far, near, there := newJob(engine.Policy{}), newJob(engine.Policy{}), newJob(engine.Policy{})
				off := m.start("off", 0, func(cfg *cfg) { cfg.Slots, cfg.Bus = -1, &cutBus{m.bus, c.silent} }, far)
				on := m.start("on", 0, noSlots, near)
				m.start("worker", 0, func(cfg *cfg) { cfg.Slots = slots; noShards(cfg) }, there).ready(t)
				m.spread(2)
				shards := map[string][]int{}
				for shard, owner := range m.owners() {
					shards[owner] = append(shards[owner], shard)
				}
				submitted := 0
				submit := func(to *modelledNode, n int) {
					for range n {
						ids := shards[to.name]
						there.submit(t, to, events.TaskID(fmt.Sprintf("%s/%s-%d", idIn(ids[submitted%len(ids)], modelledShards), to.name, submitted)))
						submitted++
					}
				}
				submit(on, 8*slots)
				submit(off, tasks)
				for began, started := time.Now(), 0; started < tasks; {
					select {
					case r := <-there.runs:
						if r.Number != 1 {
							t.Errorf("%s was given away in vain before attempt %d", r.Task, r.Number)
						}
						time.AfterFunc(20*time.Millisecond, func() { r.succeed("1") })
						if strings.Contains(string(r.Task), "/off-") {
							started++
						} else {
							submit(on, 1)
						}
					case <-time.After(time.Minute):
						t.Fatal("nothing starts")
					}
					if took := time.Since(began); took > 2*tasks*10*c.request {
						t.Fatalf("%d of %d tasks have started within %s", started, tasks, took)
					}
				}
			})
		})
	}
}

// cutBus is the bus of a node whose link to it is cut.
type cutBus struct {
	*memoryBus
	silent bool // the others have not been told: what they publish for the node vanishes
}

func (b *cutBus) Publish(string, string, []byte) error { return errors.New("cut") }

func (b *cutBus) Subscribe(ctx context.Context, subject, queue string, _ func(store.Message)) error {
	if !b.silent {
		return nil
	}
	return b.memoryBus.Subscribe(ctx, subject, queue, func(store.Message) {})
}

func (b *cutBus) Notify(_ context.Context, h func(bool)) error {
	h(false)
	return nil
}
