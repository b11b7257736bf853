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
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// Offers were on their way when their session ended, and come to an owner that has seen its end. What they promise is
// worth nothing, and no further event will tell.
func TestOffer_OfAnEndedSessionKeepsNoTask(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	var offers atomic.Int32 // the fate of offers
	offers.Store(int32(hold))
	w := &wire{sent: func(lane string) fate {
		if lane == laneOffer {
			return fate(offers.Load())
		}
		return pass
	}}
	a := c.StartNode("a", noSlots)
	b := c.StartNode("b", with(noShards, w.through), j)
	testcluster.Await(t, "offers to every shard", func() bool { return w.holding() >= c.Shards() })
	offers.Store(int32(drop))
	endSession(t, c, b)
	w.release()
	f := j.submit(t, a, "x")
	j.nothing(t)
	offers.Store(int32(pass))
	r := j.next(t)
	r.succeed("1")
	want(t, f, "1")
	if r.Number > 2 || int(r.Lost) != r.Number-1 {
		t.Errorf("attempt %d after %d losses", r.Number, r.Lost)
	}
}

// Without a bus an offer and its answer take six requests, one after another. However slow these are, and however
// many shards want the few slots of the only node that runs anything, or most of it, it is given work about as fast
// as offers travel.
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
				here, there := newJob(task.Policy{}), newJob(task.Policy{})
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

// At the beginning all that a worker has to say waits for the store at once, so that offers are posted late.
func TestOffers_OfAWorkerThatJoinsASlowStoreAtAnyMomentBringNothingInVain(t *testing.T) {
	t.Parallel()
	const tasks, slots, shards, request = 8, 2, 4, 350 * time.Millisecond
	for phase := time.Duration(0); phase <= request; phase += request / 14 {
		t.Run(fmt.Sprint(phase), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModelled(t, false)
				m.ways = map[string]modeletcd.Transport{"owner": modeletcd.Slow(request), "worker": modeletcd.Slow(request)}
				here, there := newJob(task.Policy{}), newJob(task.Policy{})
				owner := m.start("owner", 0, noSlots, here)
				owner.ready(t)
				time.Sleep(phase)
				m.start("worker", 0, func(cfg *cfg) { cfg.Slots = slots; noShards(cfg) }, there).ready(t)
				for i := range tasks {
					here.submit(t, owner, events.TaskID(fmt.Sprintf("%s/%d", idIn(i%shards, modelledShards), i)))
				}
				for range tasks {
					r := <-there.runs
					if r.Number != 1 {
						t.Errorf("%s was given away in vain before attempt %d", r.Task, r.Number)
					}
					time.AfterFunc(2*request, func() { r.succeed("1") })
				}
			})
		})
	}
}

// Others answer over the bus within milliseconds. An owner off the bus, which nobody hears there or whose link is
// cut without a word, is not judged by that: it has an offer when its letter is written.
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
				far, near, there := newJob(task.Policy{}), newJob(task.Policy{}), newJob(task.Policy{})
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

// named is a job with an id of its own, which runs when the future, nil for none, has resolved.
type named struct {
	*job
	id     string
	awaits *engine.Future
}

func (n *named) ID() string { return n.id }

func (n *named) Run(ctx context.Context, a task.Attempt) task.Outcome {
	if n.awaits != nil {
		_, _ = n.awaits.Wait(ctx) // an error is the job's to see, in its context
	}
	return n.job.Run(ctx, a)
}

func (n *named) submit(t *testing.T, to submitter, ids ...events.TaskID) {
	t.Helper()
	for _, id := range ids {
		if _, err := to.Submit(within(t), n, nil, task.SubmitOptions{ID: id}); err != nil {
			t.Fatalf("submit %s: %v", id, err)
		}
	}
}

// Lent slots are offered to the owners of other shards. The attempts that had lent them go on before the offers are
// answered: then the offers must bring nothing until fewer slots are used than there are.
func TestOffers_OfLentSlotsAreClosedWhenTheirAttemptsGoOn(t *testing.T) {
	t.Parallel()
	for _, withBus := range []bool{true, false} {
		t.Run(fmt.Sprintf("bus %t", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const slots = 2 * modelledShards
				m := newModelled(t, withBus)
				child := newJob(task.Policy{})
				parent, other := &named{job: newJob(task.Policy{}), id: "parent"}, &named{job: newJob(task.Policy{}), id: "other"}
				owner := m.start("owner", 0, nil, child)
				owner.ready(t)
				parent.awaits = child.submit(t, owner, "child")
				m.start("worker", 0, func(cfg *cfg) { cfg.Slots = slots; noShards(cfg) }, parent, other).ready(t)
				ids := func(of string) (all []events.TaskID) {
					for i := range slots {
						all = append(all, events.TaskID(fmt.Sprintf("%s/%s-%d", idIn(i%modelledShards, modelledShards), of, i)))
					}
					return all
				}
				parent.submit(t, owner, ids("parent")...)
				time.Sleep(5 * time.Second)
				if started := parent.count.Load(); started != 0 {
					t.Fatalf("%d attempts do not wait", started)
				}
				child.next(t).succeed("1")
				var parents []*run
				for range slots {
					parents = append(parents, parent.next(t))
				}
				time.Sleep(time.Second)
				other.submit(t, owner, ids("other")...)
				time.Sleep(5 * time.Second)
				for i, p := range parents {
					if started := other.count.Load(); started != int64(i) {
						t.Fatalf("%d of %d attempts that go on have ended, and %d others have started", i, slots, started)
					}
					p.succeed("1")
					other.next(t)
					time.Sleep(time.Second)
				}
			})
		})
	}
}
