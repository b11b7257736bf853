package works_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
)

// A node dies after a permit and before the operation that it is for: the item is processed again, on another node or
// once the only one is there again, finds its permit, and counts once.
func TestThreshold_APermitOfANodeThatDiesCountsOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		modes []work.Mode
		limit int64
		trips bool
	}{
		{"full", []work.Mode{work.Full}, 29, true},
		{"full of as many", []work.Mode{work.Full}, 60, false},
		{"simulate", []work.Mode{work.Simulate}, 29, true},
		{"simulate, then full", []work.Mode{work.Simulate, work.Full}, 29, true},
		{"simulate, then full of as many", []work.Mode{work.Simulate, work.Full}, 60, false},
	} {
		for _, workers := range []int64{1, 9} {
			for _, nodes := range [][]string{{"a"}, {"a", "b", "c"}} {
				s := shape{
					id:         "creations",
					partitions: len(c.modes),
					items:      60,
					buckets:    12,
					workers:    workers,
					modes:      c.modes,
					limit:      c.limit,
				}
				t.Run(fmt.Sprintf("%s, %d workers on %d nodes", c.name, workers, len(nodes)), func(t *testing.T) {
					t.Parallel()
					d := &dying{
						asked:     newAskers(),
						permitted: make(chan string, 1),
						gate:      make(chan struct{}),
					}
					d.steer = &steer{shape: s, tally: newTally()}
					d.steer.of = d.define("client")
					d.run(t, c.trips, nodes)
				})
			}
		}
	}
}

// dying is a work of creations whose third item, when it is first processed, waits behind its permit until its node is
// dead.
type dying struct {
	*steer
	asked     *askers
	permitted chan string // takes the node that dies
	gate      chan struct{}
	once      sync.Once
}

func (d *dying) define(node string) *work.Work[struct{}, int64] {
	create := creating(d.tally)
	return d.shape.define(node, d.tally, func(ctx context.Context, n int64) error {
		dies := false
		if n == 3 {
			d.once.Do(func() { dies = true })
		}
		if !dies && n > 5 && n%5 != 0 { // else others may trip before item 3 asks
			select {
			case <-d.gate:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		d.asked.note(node, n)
		if !dies {
			return create(ctx, n)
		}
		if err := work.Permit(ctx, "changes"); err != nil {
			return err
		}
		d.permitted <- node
		close(d.gate)
		return untilEnd(ctx, n)
	})
}

func (d *dying) run(t *testing.T, trips bool, nodes []string) {
	d.world = newWorld(t, testcluster.Options{TTL: 3 * time.Second}, 0, func(node string) []task.Behavior {
		return []task.Behavior{d.define(node)}
	}, nodes...)
	f := d.submit(d.of, steered)
	var dead string
	select {
	case dead = <-d.permitted:
		d.nodes[dead[0]-'a'].Crash()
	case <-d.within().Done():
		t.Fatal("item 3 is not permitted")
	}
	if len(nodes) == 1 {
		d.cluster.StartNode(dead, func(*engine.NodeConfig) {}, d.define("again"))
	}
	_, err := f.Wait(d.within())
	d.workersEnded(steered)
	full := d.shape.modes[len(d.shape.modes)-1] == work.Full
	if !trips {
		if applied := d.tally.appliedTo(); err != nil || full && len(applied) != int(d.shape.limit) {
			t.Errorf("%v, applied to %d items, want all", err, len(applied))
		}
		return
	}
	if failed, is := errors.AsType[*task.Error](err); !is || failed.Code != events.CodeThreshold {
		t.Fatalf("%v, want the code %s", err, events.CodeThreshold)
	}
	if d.shape.modes[0] == work.Simulate {
		d.tripsAgain(t, nil)
		if applied := d.tally.appliedTo(); len(applied) != 0 {
			t.Errorf("applied to %v, want none", applied)
		}
		return
	}
	d.permitsAreApplied(d.asked.by(dead))
	applied := d.tally.appliedTo()
	if d.shape.workers == 1 && !slices.Contains(applied, 3) {
		t.Error("item 3 is not applied, and no other could trip before it came again")
	}
	// Others may have tripped before items of the dead node came again, and these keep their permits.
	missed := slices.DeleteFunc(d.asked.by(dead), func(n int64) bool { return slices.Contains(applied, n) })
	if left := int(d.shape.limit) - len(applied); left < 0 || left > len(missed) {
		t.Errorf("applied to %d items, want %d but for some of %v: %v", len(applied), d.shape.limit, missed, applied)
	}
	d.tripsAgain(t, missed)
}

// tripsAgain retries the work, which trips again and applies nothing but what it has permits for.
func (d *dying) tripsAgain(t *testing.T, permitted []int64) {
	t.Helper()
	before := d.tally.appliedTo()
	_, err := d.client.Operations().Retry(d.within(), steered)
	d.must(err)
	if is := d.ends(task.Failure); is.Error == nil || is.Error.Code != events.CodeThreshold {
		t.Errorf("%+v after a retry, want the code %s", is.Error, events.CodeThreshold)
	}
	d.workersEnded(steered)
	for _, n := range d.tally.appliedTo() {
		if !slices.Contains(before, n) && !slices.Contains(permitted, n) {
			t.Errorf("a retry applies to item %d, which has no permit", n)
		}
	}
	if n := len(d.tally.appliedTo()); n > int(d.shape.limit) {
		t.Errorf("applied to %d items after a retry, want %d at most", n, d.shape.limit)
	}
}
