package integration_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/item"
	"taskledger/ledger"
	ledgerrepair "taskledger/ledger/repair"
)

const lossStore = "letters"

// added returns the id of an item that is added to the store of the test.
func added(t *testing.T, by *engine.Client, name string) int64 {
	t.Helper()
	u := &item.Update{Client: 1, Adds: []item.Add{{Group: "in", Data: []byte(name)}}}
	got, err := by.Stores().Update(within(t, soon), lossStore, u)
	if err != nil || len(got) != 1 {
		t.Fatalf("add %s: %v, %v", name, got, err)
	}
	return got[0].ID
}

// rot lets the last entry of shard 0 rot, and returns its number.
func rot(t *testing.T, c *testcluster.Cluster, last uint64) {
	t.Helper()
	key := fmt.Sprintf("journal/0/%016x", last)
	remove(t, c, key)
	put(t, c, key, "rotten")
}

// wantRecovered asserts that the history of shard 0 tells once that what followed an entry was lost, and that all is
// sound.
func wantRecovered(t *testing.T, by *engine.Client, after uint64, reason string) {
	t.Helper()
	var told []*events.Recovered
	for ev, err := range by.Ledger().Replay(within(t, soon), ledger.ReplayOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if b, is := ev.Body.(*events.Recovered); is {
			told = append(told, b)
		}
	}
	if len(told) != 1 || told[0].Entry != after || !strings.Contains(told[0].Reason, reason) {
		t.Errorf("of losses the history tells %+v, want one after entry %d: %s", told, after, reason)
	}
	found, err := by.Ledger().Verify(within(t, soon), ledger.VerifyOptions{})
	if err != nil || found[0].Problem != "" || !found[0].Compared || len(found[0].Losses) != 1 {
		t.Errorf("verified %+v, %v", found, err)
	}
}

// Ids that a journal has given out and lost are not used again: who held such an item meets no other one under its id.
func TestRepair_WhatALastEntryGaveOutIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	for name, whileItRuns := range map[string]bool{"while no node runs": false, "while a node runs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testcluster.New(t, testcluster.Options{Shards: 1})
			n := c.StartNode("a", nil)
			first := added(t, n.Client, "one")
			lost := added(t, n.Client, "lost")
			last := shardOf(t, n.Client, 0).Entries
			n.Stop()
			if last = lastEntry(t, c, last); last < 2 {
				t.Fatalf("the journal ends with entry %d", last)
			}
			rot(t, c, last)
			if whileItRuns {
				n = c.StartNode("b", nil)
				testcluster.Await(t, "a quarantined shard", func() bool { return shardOf(t, n.Client, 0).Problem != "" })
			}
			by := c.StartClient("operator", nil)
			all, err := by.Operations().Repair(within(t, soon), ledgerrepair.Options{Remove: true})
			if err != nil || len(all) != 1 || !all[0].Removed || !all[0].GivenUp {
				t.Fatalf("repaired %+v, %v", all, err)
			}
			if !whileItRuns {
				n = c.StartNode("b", nil)
			}
			testcluster.Await(t, "a shard that is served", func() bool { return shardOf(t, n.Client, 0).Problem == "" })
			next := added(t, n.Client, "next")
			if next <= lost || next <= first+1<<31 {
				t.Errorf("id %d was given out after %d and %d", next, first, lost)
			}
			wantRecovered(t, n.Client, last-1, "repair removed")
			if got, err := c.Etcd.Get(within(t, soon), "taskledger/lost/0"); err != nil || len(got.Kvs) > 0 {
				t.Errorf("the loss is still waiting: %v, %v", got, err)
			}
		})
	}
}

// lastEntry is the last entry of shard 0, at or after the one that is given.
func lastEntry(t *testing.T, c *testcluster.Cluster, from uint64) uint64 {
	t.Helper()
	for {
		got, err := c.Etcd.Get(within(t, soon), fmt.Sprintf("taskledger/journal/0/%016x", from+1))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Kvs) == 0 {
			return from
		}
		from++
	}
}

// Of a restored store nothing tells what it has lost, where no snapshot and no archive goes beyond the ends of its
// journals: it is given up all the same, and of a shard that is served nothing is.
func TestRepair_RestoredGivesUpWhatNothingTellsOf(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 2})
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	n := c.StartNode("a", nil, w.on("a"))
	f := w.submit(t, n, idOf(0, 2, "x"))
	w.next(t).succeed("done")
	want(t, f, "done")
	by := c.StartClient("operator", nil)
	if all, err := by.Operations().Repair(within(t, soon), ledgerrepair.Options{Restored: true}); err != nil || len(all) != 0 {
		t.Errorf("while all is served: %+v, %v", all, err)
	}
	n.Stop()
	last := lastEntry(t, c, 1)
	remove(t, c, fmt.Sprintf("journal/0/%016x", last))
	all, err := by.Operations().Repair(within(t, soon), ledgerrepair.Options{Restored: true})
	if err != nil || len(all) != 2 || !all[0].GivenUp || all[0].Entry != last-1 || !all[1].GivenUp || all[1].Entry != 0 {
		t.Fatalf("gave up %+v, %v", all, err)
	}
	n = c.StartNode("b", nil, w.on("b"))
	for shard := range 2 {
		testcluster.Await(t, "a shard that is served", func() bool { return shardOf(t, n.Client, shard).Entries > 0 })
	}
	found, err := n.Ledger().Verify(within(t, soon), ledger.VerifyOptions{})
	if err != nil || len(found[0].Losses) != 1 || len(found[1].Losses) != 1 || found[0].Problem+found[1].Problem != "" {
		t.Errorf("verified %+v, %v", found, err)
	}
}

// What was given up of a journal that has another end by now is given up without effect.
func TestOwner_GivesUpNothingButTheEndThatIsNamed(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	n := c.StartNode("a", nil)
	id := added(t, n.Client, "one")
	n.Stop()
	by := c.StartClient("operator", nil)
	givenUp := func() []byte {
		if all, err := by.Operations().Repair(within(t, soon), ledgerrepair.Options{Restored: true}); err != nil || len(all) != 1 || !all[0].GivenUp {
			t.Fatalf("gave up %+v, %v", all, err)
		}
		given, err := c.Etcd.Get(within(t, soon), "taskledger/lost/0")
		if err != nil || len(given.Kvs) != 1 {
			t.Fatal(given, err)
		}
		remove(t, c, "lost/0")
		return given.Kvs[0].Value
	}
	wantNothing := func(node string, id int64) {
		n := c.StartNode(node, nil)
		defer n.Stop()
		if next := added(t, n.Client, node); next != id {
			t.Errorf("id %d was given out, want %d", next, id)
		}
		if got, err := c.Etcd.Get(within(t, soon), "taskledger/lost/0"); err != nil || len(got.Kvs) > 0 {
			t.Errorf("it is still waiting: %v, %v", got, err)
		}
	}
	earlier := givenUp()
	n = c.StartNode("b", nil)
	added(t, n.Client, "two")
	n.Stop()
	put(t, c, "lost/0", string(earlier)) // a backup brings it back
	wantNothing("c", id+2)
	otherwise := givenUp()
	otherwise[bytes.Index(otherwise, []byte{0xc4, sha256.Size})+2] ^= 1 // the end of another journal
	put(t, c, "lost/0", string(otherwise))
	wantNothing("d", id+3)
}
