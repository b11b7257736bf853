package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
)

// named is a job with an id of its own, which runs when the future, nil for none, has resolved.
type named struct {
	*job
	id     string
	awaits *engine.Future
}

func (n *named) ID() string { return n.id }

func (n *named) Run(ctx context.Context, a engine.Attempt) engine.Outcome {
	if n.awaits != nil {
		_, _ = n.awaits.Wait(ctx) // an error is the job's to see, in its context
	}
	return n.job.Run(ctx, a)
}

func (n *named) submit(t *testing.T, to submitter, ids ...events.TaskID) {
	t.Helper()
	for _, id := range ids {
		if _, err := to.Submit(within(t), n, nil, engine.SubmitOptions{ID: id}); err != nil {
			t.Fatalf("submit %s: %v", id, err)
		}
	}
}

// Lent slots are offered to the owners of other shards. The attempts that had lent them go on before the offers are answered:
// then the offers must bring nothing until fewer slots are used than there are.
func TestOffers_OfLentSlotsAreClosedWhenTheirAttemptsGoOn(t *testing.T) {
	t.Parallel()
	for _, withBus := range []bool{true, false} {
		t.Run(fmt.Sprintf("bus %t", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const slots = 2 * modelledShards
				m := newModelled(t, withBus)
				child := newJob(engine.Policy{})
				parent, other := &named{job: newJob(engine.Policy{}), id: "parent"}, &named{job: newJob(engine.Policy{}), id: "other"}
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
