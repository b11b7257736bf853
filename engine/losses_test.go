package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/ledger/repair"
	"taskledger/store"
	"taskledger/store/memarchive"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
	"taskledger/tasklog/tasklogtest"
)

// Where the archive goes beyond the end of a journal, the store has lost what was committed: nobody serves the
// shard until an operator gives that up. From then on it is served, by later owners too.
func TestShard_WhoseArchiveGoesBeyondItsJournalWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	const cut, whole = 0, 1
	p := newPast(t)
	all := p.Records(cut)
	p.node.Kill()
	archive := newShelf()
	archive.held.Alter(cut, func([]memarchive.Segment) []memarchive.Segment {
		last := all[len(all)-1].Number
		return []memarchive.Segment{{Head: store.ArchiveHead{Entry: last, Sequence: 1}, Entries: all}}
	})
	p.Replace(cut, all[:len(all)-2])
	cfg := engine.NodeConfig{Store: p.Store, Archive: archive, Name: "next", TTL: 3 * time.Second, Behaviors: []task.Behavior{p.job}}
	n := runNode(t, cfg)
	wantQuarantined(t, n.Client, cut, pastShards, "its archive with entry")
	if infos, err := n.Operations().Shards(within(t)); err != nil || !strings.Contains(infos[cut].Problem, "repair --restored") {
		t.Errorf("the remedy is not named: %+v, %v", infos, err)
	}
	logs := memlog.New() // kept by numbers of entries, which other tasks get now
	for shard := range uint16(pastShards) {
		of := tasklog.Attempt{Shard: shard, Life: events.RefOf(1, 1), Number: 1}
		if _, err := logs.Append(within(t), of, tasklog.End{}, tasklogtest.Lines(1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	by := runClient(t, engine.ClientConfig{Store: p.Store, Archive: archive, Logs: logs})
	found, err := by.Operations().Repair(within(t), repair.Options{Restored: true})
	if err != nil || len(found) != 1 || found[0].Shard != cut || !found[0].GivenUp {
		t.Fatalf("gave up %+v, %v", found, err)
	}
	for shard, has := range map[uint16]int{cut: 0, whole: 1} {
		if left, _, err := logs.Lives(within(t), shard, 0); err != nil || len(left) != has {
			t.Errorf("%d logs of shard %d are left, %v; want %d", len(left), shard, err, has)
		}
	}
	serves := func(n *engine.Node, name string) {
		t.Helper()
		testcluster.Await(t, "a shard that is served", func() bool {
			f, err := n.Submit(within(t), p.job, nil, task.SubmitOptions{ID: idIn(cut, pastShards) + "/" + events.TaskID(name)})
			if err != nil {
				return false
			}
			for { // a busy machine lets a session end, and its attempt is made again
				select {
				case r := <-p.job.runs:
					r.succeed("2")
				case <-f.Done():
					want(t, f, "2")
					return true
				}
			}
		})
	}
	serves(n, "first")
	n.Kill()
	cfg.Name = "another"
	n = runNode(t, cfg)
	serves(n, "second")
	checked, err := n.Ledger().Verify(within(t), ledger.VerifyOptions{})
	if err != nil || len(checked[cut].Losses) != 1 || len(checked[whole].Losses) != 0 || checked[cut].Problem != "" {
		t.Errorf("verified %+v, %v", checked, err)
	}
}

// A snapshot that goes beyond the end of a journal tells of a loss as well. Once that is recorded no snapshot of
// what was lost is left.
func TestShard_WhoseSnapshotGoesBeyondItsJournalWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	u := &upkeep{shelf: newShelf()}
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	w := &worker{attempts: map[events.TaskID]int{}}
	n := c.StartNode("a", func(cfg *engine.NodeConfig) { u.Store, cfg.Store = cfg.Store, small{cfg.Store} }, w)
	var newest store.SnapshotPointer
	testcluster.Await(t, "two snapshots", func() bool {
		fill(t, n.Client, w, fmt.Sprint("x", len(w.attempts), "/"), 300)
		var err error
		newest, err = u.Store.Pointer(within(t), 0)
		return err == nil && len(newest.Kept) == 2 && newest.Kept[0].Entry > newest.Kept[1].Entry+1
	})
	n.Stop()
	newest, err := u.Pointer(within(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	for k, err := range u.Behind(within(t), 0, newest.Kept[0].Entry-1) {
		if err == nil {
			err = u.Remove(within(t), k)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n = c.StartNode("b", nil, w)
	wantQuarantined(t, n.Client, 0, 1, "has a snapshot of entry")
	found, err := n.Operations().Repair(within(t), repair.Options{Restored: true})
	if err != nil || len(found) != 1 || !found[0].GivenUp {
		t.Fatalf("gave up %+v, %v", found, err)
	}
	testcluster.Await(t, "a shard that is served", func() bool {
		infos, err := n.Operations().Shards(within(t))
		return err == nil && infos[0].Problem == ""
	})
	left, err := u.Pointer(within(t), 0)
	if err != nil || len(left.Kept) != 1 || left.Kept[0] != newest.Kept[1] {
		t.Errorf("of the snapshots %+v is left, %v; want %+v", left, err, newest.Kept[1])
	}
}
