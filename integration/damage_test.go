package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	ledgerrepair "taskledger/ledger/repair"
	"taskledger/store"
	"taskledger/task"
)

// idOf returns an id of a shard.
func idOf(shard, shards int, name string) string {
	for i := 0; ; i++ {
		if id := events.TaskID(fmt.Sprint(name, i)); id.Shard(shards) == shard {
			return string(id)
		}
	}
}

// shardOf returns what a shard tells of itself.
func shardOf(t *testing.T, by *engine.Client, shard int) engine.ShardInfo {
	t.Helper()
	all, err := by.Operations().Shards(within(t, soon))
	if err != nil {
		t.Fatal(err)
	}
	return all[shard]
}

func remove(t *testing.T, c *testcluster.Cluster, key string) {
	t.Helper()
	if _, err := c.Etcd.Delete(within(t, soon), "taskledger/"+key); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, c *testcluster.Cluster, key, value string) {
	t.Helper()
	if _, err := c.Etcd.Put(within(t, soon), "taskledger/"+key, value); err != nil {
		t.Fatal(err)
	}
}

// An owner key that is corrupt is taken by its revision; a key of a shard that does not exist is nobody's. Neither
// ends a session or an attempt, and all shards are served.
func TestDamage_OfMemberKeysEndsNoSession(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		nodes := c.StartNodes(nil, func(node string) []task.Behavior { return []task.Behavior{w.on(node)} }, "a", "b")
		c.AwaitSpread()
		sessions := []string{nodes[0].SessionID(), nodes[1].SessionID()}
		const damaged = 3
		running := w.submit(t, nodes[0], idOf(damaged, c.Shards(), "running"))
		r := w.next(t)
		for key, value := range map[string]string{"owner/3": "junk", "owner/99": "junk", "owner/100": "\x92\x01\xa1x", "owner/03": "\x92\x01\xa1x", "owner/x": "x",
			"node/": "x", "journal/99/0000000000000001": "x", "snapshot/99": "x"} {
			put(t, c, key, value)
		}
		for shard := range c.Shards() {
			f := w.submit(t, nodes[1], idOf(shard, c.Shards(), "x"))
			w.next(t).succeed("done")
			want(t, f, "done")
		}
		r.succeed("still running")
		want(t, running, "still running")
		for i, n := range nodes {
			if now := n.SessionID(); now != sessions[i] {
				t.Errorf("session %s of node %s after %s: it has started again", now, n.Name, sessions[i])
			}
		}
		for _, key := range []string{"owner/99", "owner/100", "node/"} {
			remove(t, c, key)
		}
	})
}

// Somebody else has written where the next entry belongs. Nothing can be recorded any more, which every answer says,
// with the key and the remedy; nothing is lost, and removing the key is all it takes.
func TestDamage_AnAlienEntryIsNamedAndItsRemovalHeals(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		const shard = 6
		id := func(name string) string { return idOf(shard, c.Shards(), name) }
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		nodes := c.StartNodes(nil, func(node string) []task.Behavior { return []task.Behavior{w.on(node)} }, "a", "b")
		c.AwaitSpread()
		client := c.StartClient("caller", nil)
		session := shardOf(t, client.Client, shard).Owner
		running := w.submit(t, client, id("running"))
		r := w.next(t)
		next := shardOf(t, client.Client, shard).Entries + 1
		key := fmt.Sprintf("journal/%d/%016x", shard, next)
		put(t, c, key, "garbage")

		named := func(what string, err error, kinds ...error) {
			t.Helper()
			of := false
			for _, kind := range kinds {
				of = of || errors.Is(err, kind)
			}
			if !of || !strings.Contains(err.Error(), "quarantined") || !strings.Contains(err.Error(), "taskledger repair") {
				t.Errorf("%s: %v", what, err)
			}
		}
		submit := func(by behaviors.Client) error {
			_, err := w.Submit(within(t, soon), by, id("refused"))
			return err
		}
		named("the first submit", submit(client), store.ErrUnavailable, task.ErrUnknown) // it may have left its sender in doubt
		testcluster.Await(t, "a definite refusal of all who submit", func() bool {
			for _, by := range []behaviors.Client{client, nodes[0], nodes[1]} {
				err := submit(by)
				if named("submit", err, store.ErrUnavailable, task.ErrUnknown); !errors.Is(err, store.ErrUnavailable) {
					return false
				}
			}
			return true
		})
		for _, by := range []*engine.Client{client.Client, nodes[0].Client, nodes[1].Client} {
			if s := shardOf(t, by, shard); !strings.Contains(s.Problem, "taskledger/"+key) || !strings.Contains(s.Problem, "taskledger repair") || s.Owner != session {
				t.Errorf("shard %d tells %+v", shard, s)
			}
			_, err := by.Get(within(t, soon), events.TaskID(id("running")))
			named("get", err, store.ErrUnavailable)
			_, err = by.Attach(events.TaskID(id("running"))).Wait(within(t, soon))
			named("wait", err, store.ErrUnavailable)
			named("cancel", by.Operations().Cancel(within(t, soon), events.TaskID(id("running")), ""), store.ErrUnavailable, task.ErrUnknown)
			if e, err := by.Explain(within(t, soon), events.TaskID(id("running"))); err != nil || e.Why != task.WhyQuarantined || !strings.Contains(e.Text, "taskledger repair") {
				t.Errorf("explained as %+v, %v", e, err)
			}
		}
		pending(t, running)

		remove(t, c, key)
		r.succeed("unharmed")
		want(t, running, "unharmed")
		testcluster.Await(t, "a shard that is served again", func() bool {
			f, err := w.Submit(within(t, soon), client, id("later"))
			if err == nil {
				w.next(t).succeed("done")
				want(t, f, "done")
			}
			return err == nil
		})
		if s := shardOf(t, client.Client, shard); s.Owner != session || s.Problem != "" {
			t.Errorf("shard %d tells %+v, want the owner %s as before", shard, s, session)
		}
		w.nothing(t)
	})
}

// What is stored behind the last entry and is none for certain can be removed while nodes run, and heals what it has
// damaged. What may be an entry stays.
func TestRepair_RemovesWhatIsNoEntryAndNothingElse(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	n := c.StartNode("a", nil, w.on("a"))
	finish := func(shard int, name string) {
		t.Helper()
		f := w.submit(t, n, idOf(shard, c.Shards(), name))
		w.next(t).succeed("done")
		want(t, f, "done")
	}
	key := func(shard int, entry uint64) string { return fmt.Sprintf("journal/%d/%016x", shard, entry) }
	value := func(key string) string {
		t.Helper()
		got, err := c.Etcd.Get(within(t, soon), "taskledger/"+key)
		if err != nil || len(got.Kvs) != 1 {
			t.Fatalf("%s: %v, %v", key, got, err)
		}
		return string(got.Kvs[0].Value)
	}
	last := make([]uint64, c.Shards())
	for shard := range c.Shards() {
		finish(shard, "x")
		finish(shard, "y")
		last[shard] = shardOf(t, n.Client, shard).Entries
	}
	put(t, c, key(1, last[1]+1), "garbage")
	put(t, c, key(2, last[2]+1), value(key(2, last[2])))
	put(t, c, "journal/3/zzz", "garbage")
	put(t, c, key(3, last[3]+1000), "garbage")
	sound := value(key(4, last[4]-1))
	put(t, c, key(4, last[4]-1), "damaged")
	put(t, c, key(5, last[5]+1), "an entry, perhaps")
	put(t, c, key(5, last[5]+1), "written over")
	put(t, c, key(6, last[6]+1), "\x95\x7f"+value(key(6, last[6]))[2:]) // of a version that is not known
	put(t, c, key(6, last[6]+2), "behind that")
	put(t, c, "owner/99", "x")
	put(t, c, "journal/99/1", "x")
	if _, err := w.Submit(within(t, soon), n, idOf(1, c.Shards(), "refused")); err == nil {
		t.Error("something was recorded where there is no place")
	}

	type found struct {
		key             string
		remove, removed bool
	}
	repair := func(remove bool, want ...found) {
		t.Helper()
		all, err := n.Operations().Repair(within(t, soon), ledgerrepair.Options{Remove: remove})
		if err != nil {
			t.Fatal(err)
		}
		var got []found
		for _, s := range all {
			t.Logf("%+v", s)
			got = append(got, found{strings.TrimPrefix(s.Key, "taskledger/"), s.Keep == "", s.Removed})
		}
		if !slices.Equal(got, want) {
			t.Errorf("found %+v, want %+v", got, want)
		}
	}
	kept := []found{{key(4, last[4]-1), false, false}, {key(4, last[4]), false, false}, {key(5, last[5]+1), false, false},
		{key(6, last[6]+1), false, false}, {key(6, last[6]+2), false, false},
		{"owner/99", false, false}, {"journal/99/1", false, false}}
	with := func(removed bool) []found {
		return append([]found{{key(1, last[1]+1), true, removed}, {key(2, last[2]+1), true, removed},
			{key(3, last[3]+1000), true, removed}, {"journal/3/zzz", true, removed}}, kept...)
	}
	repair(false, with(false)...)
	repair(true, with(true)...)
	repair(true, kept...)
	put(t, c, key(4, last[4]-1), sound)
	remove(t, c, key(5, last[5]+1))
	remove(t, c, key(6, last[6]+1))
	remove(t, c, key(6, last[6]+2))
	remove(t, c, "owner/99")
	for shard := range c.Shards() {
		testcluster.Await(t, "a shard that is served", func() bool { return shardOf(t, n.Client, shard).Problem == "" })
		finish(shard, "z")
	}
}
