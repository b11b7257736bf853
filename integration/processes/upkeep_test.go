package processes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/ledger"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/task"
)

// upkeepCluster is one of several clusters, of one shard each, on servers that are a process of their own; with a
// client in the test that reads the archive.
type upkeepCluster struct {
	*testing.T
	nodes  role
	etcd   *clientv3.Client
	store  *etcdstore.Store
	client *engine.Client
}

func joinUpkeep(t *testing.T, servers word, name string) *upkeepCluster {
	t.Helper()
	c := &upkeepCluster{T: t, nodes: role{
		Etcd:    servers.Etcd,
		NATS:    servers.NATS,
		NKey:    servers.NKey,
		Cluster: name,
		Shards:  1,
		Slots:   64,
		TTL:     processTTL,
		Upkeep:  true,
	}}
	var err error
	c.etcd, err = etcdstore.NewClient(t.Context(), etcdstore.Config{Endpoints: []string{servers.Etcd}})
	ok(t, err)
	t.Cleanup(func() { c.etcd.Close() })
	c.store, err = etcdstore.Open(within(t, soon), etcdstore.Config{Client: c.etcd, Cluster: name, Shards: 1})
	ok(t, err)
	t.Cleanup(func() { c.store.Close() })
	bus, err := natsbus.Open(natsbus.Config{
		URLs:    []string{servers.NATS},
		NKey:    servers.NKey,
		Cluster: name,
		Key:     c.store.Cluster().Key,
	})
	ok(t, err)
	t.Cleanup(func() { bus.Close() })
	archive, err := bus.Archive(embedded.ArchiveConfig())
	ok(t, err)
	c.client, err = engine.NewClient(engine.ClientConfig{Store: c.store, Bus: bus, Archive: archive})
	ok(t, err)
	ended, ctx := make(chan error, 1), t.Context()
	go func() { ended <- c.client.Run(ctx) }()
	t.Cleanup(func() { ok(t, <-ended) })
	return c
}

// node starts a node that dies at a write; nil = it lives on.
func (c *upkeepCluster) node(name string, dies *fatalWrite) *process {
	c.Helper()
	r := c.nodes
	r.Name, r.Dies = name, dies
	p, _ := startProcess(c.T, r)
	return p
}

func (c *upkeepCluster) first() uint64 {
	c.Helper()
	first, err := c.store.First(within(c.T, soon), 0)
	ok(c.T, err)
	return first
}

// echo is a behavior that both the nodes' processes and the test know.
func echo() *behaviors.Behavior[string, string] {
	return behaviors.Define("echo", &behaviors.Rules[string, string]{TaskID: func(p string) events.TaskID {
		name, _, _ := strings.Cut(p, " ")
		return events.TaskID(name)
	}})
}

func runEcho() task.Behavior {
	return echo().Bind(func(_ context.Context, p string) (string, error) { return p + " ran 1", nil })
}

// padded is parameters of 750 bytes that begin with the name of the task. Its result stays in the state of the shard.
func padded(name string) string { return name + " " + strings.Repeat("x", 750) }

// At every write of a snapshot, an archived segment and a trim the process of the owner kills itself, before it or just
// after it. The process that comes next goes on: every acknowledged task has its one outcome, every entry is in archive
// or journal, unchanged, and what was left half done is gone.
func TestProcess_KilledAtAnyWriteOfUpkeepLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	_, servers := startProcess(t, role{Servers: true, Name: "servers", Dir: t.TempDir()})
	cases := []fatalWrite{{Kind: writePiece, Nth: 1, Made: true}}
	for i, kind := range []string{writePart, writePublish, writeArchive, writeConfirm, writeTrim} {
		of := []fatalWrite{
			{Kind: kind, Nth: 1},
			{Kind: kind, Nth: 2, Made: true},
			{Kind: kind, Nth: 1, Made: true},
			{Kind: kind, Nth: 2},
		}
		cases = append(cases, testkit.Some(slices.Concat(of[i%2:], of[:i%2]), len(of))...)
	}
	for i, at := range cases {
		t.Run(fmt.Sprintf("%s-%d/made=%t", at.Kind, at.Nth, at.Made), func(t *testing.T) {
			t.Parallel()
			testkit.Busy(t)
			c := joinUpkeep(t, servers, "upkeep-"+strconv.Itoa(i))
			work := load{atOnce: 16, params: padded, again: true}
			if at.Kind == writePiece {
				work.atOnce = 1 // a task at a time: a trim of many small entries has several pieces
			}
			victim := c.node("a", &at)
			f := startFlow(t, work, c.client)
			victim.dies()
			before := c.first()
			if at.Kind == writePiece && (before <= 1 || before >= c.kept()[1].Entry) {
				t.Errorf("the journal begins with entry %d, the snapshots are %+v: it did not die within a trim", before, c.kept())
			}
			b := c.node("b", nil)
			testcluster.AwaitShards(t, c.client, "a trim by the next owner", func(s engine.ShardInfo) bool {
				return s.First > max(before, 1) && s.Degraded == ""
			})
			c.wantOneOutcomeEach(f.end())
			c.wantWhole()
			b.stop()
			c.wantNoLeftovers()
		})
	}
}

func (c *upkeepCluster) kept() []store.SnapshotInfo {
	c.Helper()
	p, err := c.store.Pointer(within(c.T, soon), 0)
	ok(c.T, err)
	return p.Kept
}

// wantWhole asserts that every entry there ever was is in the journal or the archive, and that all is as it has to be.
// While etcd does not answer in time, as on a machine whose disk is busy, it asks again; an archive that is away is a
// failure.
func (c *upkeepCluster) wantWhole() {
	c.Helper()
	var all []ledger.Verification
	testcluster.Await(c.T, "owners whose states are compared", func() bool {
		var err error
		all, err = c.client.Ledger().Verify(within(c.T, soon), ledger.VerifyOptions{Archive: true})
		if errors.Is(err, store.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded) {
			c.Log(err)
			return false
		}
		ok(c.T, err)
		return !slices.ContainsFunc(all, func(v ledger.Verification) bool { return v.Problem == "" && !v.Compared })
	})
	for _, v := range all {
		if v.Problem != "" || v.From != 1 {
			c.Errorf("shard %d from entry %d: %s", v.Shard, v.From, v.Problem)
		}
	}
}

// wantOneOutcomeEach asserts that so many tasks were created, each once, and that each has succeeded, once, after two
// attempts at most.
func (c *upkeepCluster) wantOneOutcomeEach(tasks int) {
	c.Helper()
	type counts struct{ created, started, succeeded, failed int }
	all := map[events.TaskID]counts{}
	for ev, err := range c.client.Ledger().Replay(within(c.T, soon), ledger.ReplayOptions{}) {
		if err != nil {
			c.Fatal(err)
		}
		n := all[ev.Task]
		switch ev.Body.(type) {
		case *events.Created:
			n.created++
		case *events.Started:
			n.started++
		case *events.Succeeded:
			n.succeeded++
		case *events.Failed:
			n.failed++
		}
		all[ev.Task] = n
	}
	for id, n := range all {
		if n.created != 1 || n.succeeded != 1 || n.failed != 0 || n.started > 2 {
			c.Errorf("task %s: %+v", id, n)
		}
	}
	if len(all) != tasks {
		c.Errorf("%d tasks were created, %d submits were acknowledged", len(all), tasks)
	}
}

// wantNoLeftovers asserts that of snapshots only the two that are kept are stored, and parts of a later one that was
// under way. No node may run.
func (c *upkeepCluster) wantNoLeftovers() {
	c.Helper()
	prefix := c.nodes.Cluster + "/snapshot/0/"
	got, err := c.etcd.Get(within(c.T, soon), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	ok(c.T, err)
	kept := c.kept()
	if len(kept) == 0 {
		c.Error("no snapshot is kept")
		return
	}
	for _, kv := range got.Kvs {
		key := strings.TrimPrefix(string(kv.Key), prefix)
		of := func(s store.SnapshotInfo) bool {
			return strings.HasPrefix(key, fmt.Sprintf("%016x-%d/", s.Entry, s.Epoch))
		}
		if !slices.ContainsFunc(kept, of) && key < fmt.Sprintf("%016x", kept[0].Entry) {
			c.Errorf("part %s of a snapshot that is not kept: %+v", key, kept)
		}
	}
}
