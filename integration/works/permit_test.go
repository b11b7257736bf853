package works_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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
						asked:     newCallers(),
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
	asked     *callers
	permitted chan string // takes the node that dies
	gate      chan struct{}
	once      sync.Once
	only      atomic.Pointer[map[int64]bool] // the others are skipped; nil = none is
}

func (d *dying) define(node string) *work.Work[struct{}, int64] {
	create := creating(d.tally)
	return d.shape.define(node, d.tally, func(ctx context.Context, n int64) error {
		if only := d.only.Load(); only != nil && !(*only)[n] {
			return work.Skip("it has no permit")
		}
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
	d.appliesWhatIsPermitted(t)
}

// appliesWhatIsPermitted has what has a permit, and nothing else, ask for one: at the end of the work the operation was
// applied to exactly as many items as the limit.
func (d *dying) appliesWhatIsPermitted(t *testing.T) {
	t.Helper()
	only := d.permittedItems()
	if len(only) != int(d.shape.limit) {
		t.Fatalf("items %v have permits, want %d", only, d.shape.limit)
	}
	d.only.Store(&only)
	_, err := d.client.Operations().Retry(d.within(), steered)
	d.must(err)
	d.ends(task.Success)
	d.workersEnded(steered)
	applied := d.tally.appliedTo()
	if want := slices.Sorted(maps.Keys(only)); !slices.Equal(applied, want) {
		t.Errorf("applied to %v, want those with a permit: %v", applied, want)
	}
}

// permittedItems returns the numbers that have a permit by the journal, where an item is named by a hash of its bucket
// and its place in it.
func (d *dying) permittedItems() map[int64]bool {
	d.Helper()
	size := d.shape.items / d.shape.buckets
	numbers := map[uint64]int64{}
	for n := range d.shape.items {
		b := binary.BigEndian.AppendUint64(nil, uint64(n/size)+1)
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(append(b, 'o'), uint64(n%size)+1))
		numbers[binary.BigEndian.Uint64(sum[:])] = n
	}
	permitted := map[int64]bool{}
	for ev, err := range d.client.Ledger().History(d.within(), steered) {
		d.must(err)
		b, is := ev.Body.(*events.PermitsGranted)
		for i := 0; is && i < len(b.Items); i++ {
			n, known := numbers[b.Items[i]]
			if !known || permitted[n] {
				d.Errorf("item %x of bucket %d is none, or is permitted twice", b.Items[i], b.Bucket)
			}
			permitted[n] = true
		}
	}
	return permitted
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
