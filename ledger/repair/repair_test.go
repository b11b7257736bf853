package repair_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/ledger/repair"
	"taskledger/store"
	"taskledger/task"
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
	n := testcluster.RunNode(t, engine.NodeConfig{Store: j.Store, Name: "n", TTL: 3 * time.Second, Behaviors: []task.Behavior{run}})
	reads := 0
	grow := func(shard int) {
		reads++
		id := events.TaskID(fmt.Sprint(testcluster.IDIn(shard, shards), "/", reads))
		f, err := job.SubmitWith(testcluster.Within(t), n, reads, task.SubmitOptions{ID: id})
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

// ends is an archive of which only the ends are asked, and a membership with one node that serves every shard.
type ends struct {
	store.Archiver
	of     map[int]error // why an end cannot be read
	shards int
	asked  int
}

// Head implements store.Archiver.
func (e *ends) Head(_ context.Context, shard int) (store.ArchiveHead, error) {
	e.asked++
	return store.ArchiveHead{}, e.of[shard]
}

// ReadMembers implements repair.Members.
func (e *ends) ReadMembers(context.Context) (store.Membership, error) {
	all := store.Membership{Nodes: map[string]store.NodeInfo{"n": {}}, Owners: map[int]store.Owner{}}
	for shard := range e.shards {
		all.Owners[shard] = store.Owner{Node: "n"}
	}
	return all, nil
}

// Of an archive that can be read of some shards and not of others, only the others are told. One that answers nothing
// is not asked for each.
func TestRepair_TellsOfEachShardWhetherItsArchiveCanBeRead(t *testing.T) {
	t.Parallel()
	const shards = 8
	j := testcluster.StartJournals(t, shards)
	damaged, silent := fmt.Errorf("the last segment: %w", events.ErrDamaged), fmt.Errorf("no answer: %w", store.ErrUnavailable)
	for name, row := range map[string]struct {
		of    map[int]error
		asked int
		told  []int
	}{
		"damage of the first shard":   {map[int]error{0: damaged}, shards, []int{0}},
		"damage of the first three":   {map[int]error{0: damaged, 1: damaged, 2: damaged}, shards, []int{0, 1, 2}},
		"no answer about two":         {map[int]error{1: silent, 2: silent}, shards, []int{1, 2}},
		"no answer about every other": {map[int]error{0: silent, 2: silent, 4: silent}, shards, []int{0, 2, 4}},
		"no answer from the third on": {map[int]error{2: silent, 3: silent, 4: silent, 5: silent, 6: silent, 7: silent}, 5, []int{2, 3, 4, 5, 6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &ends{of: row.of, shards: shards}
			journals := repair.Journals{
				Shards:    shards,
				Journal:   j.Store,
				Snapshots: j.Store,
				Repairer:  j.Store,
				Losses:    j.Store,
				Members:   e,
				Archive:   e,
			}
			all, err := journals.Repair(testcluster.Within(t), repair.Options{Restored: true})
			if err != nil {
				t.Fatal(err)
			}
			var told []int
			for _, s := range all {
				if told = append(told, s.Shard); s.GivenUp || s.Keep == "" {
					t.Errorf("told %+v, want it kept", s)
				}
			}
			if !slices.Equal(told, row.told) || e.asked != row.asked {
				t.Errorf("told of shards %v, asked %d times; want %v, %d", told, e.asked, row.told, row.asked)
			}
		})
	}
}
