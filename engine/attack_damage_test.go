package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/natsbus"
	"taskledger/store"
)

// past is a cluster on etcd with a past, whose journals a test damages.
type past struct {
	*testcluster.Journals
	node *engine.Node
	job  *job
}

const pastShards = 2

// newPast runs six tasks in turns of the shards, which make entries of their own.
func newPast(t *testing.T) *past {
	t.Helper()
	p := &past{Journals: testcluster.StartJournals(t, pastShards), job: newJob(engine.Policy{})}
	p.node = runNode(t, engine.NodeConfig{Store: p.Store, Name: "n", TTL: 3 * time.Second, Behaviors: []engine.Behavior{p.job}})
	for i := range 6 {
		f := p.job.submit(t, p.node, events.TaskID(fmt.Sprint(idIn(i%pastShards, pastShards), "/n-", i)))
		p.job.next(t).succeed("1")
		want(t, f, "1")
	}
	return p
}

// An entry that cannot be read stops its shard and no other, and no node dies of it or takes it back and forth.
func TestShard_WithADamagedEntryIsQuarantinedAlone(t *testing.T) {
	t.Parallel()
	_, etcd := testcluster.StartEtcd(t)
	url := testcluster.StartNATS(t).URL
	const shards = 4
	st, err := etcdstore.Open(within(t), etcdstore.Config{Client: etcd, Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	const poisoned = 2
	if _, err := etcd.Put(within(t), "taskledger/journal/2/0000000000000001", "garbage"); err != nil {
		t.Fatal(err)
	}
	bus := func() store.Bus {
		b, err := natsbus.Open(natsbus.Config{URLs: []string{url}, Key: st.Cluster().Key})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	j := newJob(engine.Policy{})
	n := runNode(t, engine.NodeConfig{Store: st, Bus: bus(), Name: "n", TTL: time.Minute, Behaviors: []engine.Behavior{j}})
	session := n.SessionID()
	for shard := range shards {
		id := idIn(shard, shards)
		if shard == poisoned {
			continue
		}
		f := j.submit(t, n, id)
		j.next(t).succeed("1")
		want(t, f, "1")
	}
	if id := n.SessionID(); id != session {
		t.Errorf("session %s after %s: the node has started again", id, session)
	}
	wantQuarantined(t, n.Client, poisoned, shards, "damaged entry")
	wantQuarantined(t, runClient(t, engine.ClientConfig{Bus: bus(), Shards: shards}), poisoned, shards, "damaged entry")
	found, err := n.Ledger().Verify(within(t), ledger.VerifyOptions{})
	if err != nil || found[poisoned].Problem == "" {
		t.Errorf("verification of shard %d: %+v, %v; want the damage", poisoned, found, err)
	}
}

// A journal that lacks an entry, or holds another in its place, is damaged as well.
func TestShard_IsQuarantinedForEveryKindOfDamage(t *testing.T) {
	t.Parallel()
	const damaged, sound = 0, 1 // which holds the settings
	for i, row := range slices.Concat(testcluster.Damages, testcluster.Damages) {
		archives := i >= len(testcluster.Damages)
		t.Run(fmt.Sprint(row.What, ", with an archive: ", archives), func(t *testing.T) {
			t.Parallel()
			p := newPast(t)
			whole := p.Records(damaged)
			p.node.Kill()
			p.Replace(damaged, row.Do(t, slices.Clone(whole)))
			cfg := engine.NodeConfig{Store: p.Store, Name: "next", TTL: time.Minute, Behaviors: []engine.Behavior{p.job}}
			if archives {
				cfg.Archive = newShelf()
			}
			n := runNode(t, cfg)
			session := n.SessionID()
			why := fmt.Sprintf("entry %d of shard %d", row.At, damaged)
			wantQuarantined(t, n.Client, damaged, pastShards, why)
			wantQuarantined(t, runClient(t, engine.ClientConfig{Store: p.Store}), damaged, pastShards, why)
			f := p.job.submit(t, n, idIn(sound, pastShards))
			p.job.next(t).succeed("1")
			want(t, f, "1")
			if now := n.SessionID(); now != session {
				t.Errorf("session %s after %s: the node has started again", now, session)
			}
			if rec, err := p.Store.Entry(within(t), damaged, whole[len(whole)-1].Number+1); !errors.Is(err, store.ErrTrimmed) {
				t.Errorf("entry %d, %v was appended to what is damaged", rec.Number, err)
			}
			p.Replace(damaged, whole)
			testcluster.Await(t, "a shard that is served since it was restored", func() bool {
				f, err := n.Submit(within(t), p.job, nil, engine.SubmitOptions{ID: idIn(damaged, pastShards)})
				if err == nil {
					p.job.next(t).succeed("2")
					want(t, f, "2")
				}
				return err == nil
			})
		})
	}
}

// wantQuarantined asserts that of a cluster's shards one, at once, tells everybody who asks that it is quarantined, and why.
func wantQuarantined(t *testing.T, c *engine.Client, shard, shards int, why string) {
	t.Helper()
	infos, err := c.Shards(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(infos[shard].Problem)
	for i, info := range infos {
		if quarantined := strings.HasPrefix(info.Problem, "quarantined: ") && strings.Contains(info.Problem, why); quarantined != (i == shard) || !quarantined && info.Problem != "" {
			t.Errorf("shard %d says %q", i, info.Problem)
		}
	}
	wantUnserved(t, c, idIn(shard, shards), why)
}
