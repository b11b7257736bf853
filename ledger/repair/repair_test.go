package repair_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/ledger/repair"
	"taskledger/store"
)

// growing is a store in which every journal has grown whenever its end is read.
type growing struct {
	store.Repairer
	grow func(shard int)
}

func (g growing) Behind(ctx context.Context, shard int, entry uint64) iter.Seq2[store.StoredKey, error] {
	g.grow(shard)
	return g.Repairer.Behind(ctx, shard, entry)
}

// Repair reads a journal that nodes write to, and finds nothing in it that is not where it belongs.
func TestRepair_FollowsAJournalThatGrows(t *testing.T) {
	t.Parallel()
	const shards = 2
	j := testcluster.StartJournals(t, shards)
	job := behaviors.Define[int, int]("job", nil)
	run := job.Bind(func(_ context.Context, n int) (int, error) { return n, nil })
	n := testcluster.RunNode(t, engine.NodeConfig{Store: j.Store, Name: "n", TTL: 3 * time.Second, Behaviors: []engine.Behavior{run}})
	reads := 0
	grow := func(shard int) {
		reads++
		id := events.TaskID(fmt.Sprint(testcluster.IDIn(shard, shards), "/", reads))
		f, err := job.SubmitWith(testcluster.Within(t), n, reads, engine.SubmitOptions{ID: id})
		if err == nil {
			_, err = f.Wait(testcluster.Within(t))
		}
		if err != nil {
			t.Errorf("task %s: %v", id, err)
		}
	}
	journals := repair.Journals{Shards: shards, Journal: j.Store, Snapshots: j.Store, Repairer: growing{j.Store, grow}, Losses: j.Store, Members: j.Store}
	found, err := journals.Repair(testcluster.Within(t), repair.Options{Remove: true})
	if err != nil || len(found) > 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	if reads != shards {
		t.Errorf("the journals of %d shards were read %d times", shards, reads)
	}
	all, err := n.Ledger().Verify(testcluster.Within(t), ledger.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Damage != "" || v.Entries == 0 || !v.Compared {
			t.Errorf("after the repair: %+v", v)
		}
	}
}
