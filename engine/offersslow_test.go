package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/modeletcd"
)

// Without a bus an offer and its answer take six requests, one after another. However slow these are, and however many shards
// want the few slots of the only node that runs anything, or most of it, it is given work about as fast as offers travel.
func TestOffers_BringWorkThroughASlowStore(t *testing.T) {
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
