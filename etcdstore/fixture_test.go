package etcdstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

const cluster = "test"

// timeout bounds what must come true sooner or later, on a slow and busy machine. It is used up only by a failure.
const timeout = 2 * time.Minute

// fixture is a cluster with one store behind faults and one that works.
type fixture struct {
	*testing.T
	ctx           context.Context
	keys          etcdstore.Keys
	raw           *clientv3.Client // to look and tamper
	client        *clientv3.Client // behind faults
	faults        *testcluster.Faults
	faulty, sound *etcdstore.Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	endpoint, raw := testcluster.StartEtcd(t)
	return fixtureOn(t, ctx, endpoint, raw)
}

func fixtureOn(t *testing.T, ctx context.Context, endpoint string, raw *clientv3.Client) *fixture {
	t.Helper()
	client := dial(t, endpoint)
	f := &fixture{T: t, ctx: ctx, keys: etcdstore.KeysOf(cluster), raw: raw, client: client, faults: testcluster.InstallFaults(client)}
	f.faulty = openStore(t, etcdstore.Config{Cluster: cluster, Client: client})
	f.sound = openStore(t, etcdstore.Config{Cluster: cluster, Client: raw})
	return f
}

func dial(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func openStore(t *testing.T, cfg etcdstore.Config) *etcdstore.Store {
	t.Helper()
	if cfg.RequestTimeout == 0 { // a machine that is busy otherwise answers late
		cfg.RequestTimeout = timeout
	}
	s, err := etcdstore.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// must ends the test when a step that is not under test fails.
func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) join(s *etcdstore.Store) store.Session {
	f.Helper()
	session, err := s.Join(f.ctx, store.NodeInfo{Name: "n", Owner: true}, time.Minute)
	f.must(err)
	return session
}

// own takes shard 0 of the fresh cluster through the faulty store.
func (f *fixture) own() store.Ownership {
	f.Helper()
	o, err := f.faulty.Take(f.ctx, f.join(f.faulty), 0, store.Owner{})
	f.must(err)
	return o
}

func (f *fixture) append(o store.Ownership, after store.Head, entry string) store.Head {
	f.Helper()
	rev, err := f.faulty.Append(f.ctx, o, after, []byte(entry))
	f.must(err)
	return store.Head{Number: after.Number + 1, Revision: rev}
}

// snapshot puts the parts of a snapshot through the faulty store and publishes it as the newest.
func (f *fixture) snapshot(o store.Ownership, entry uint64, parts ...string) store.SnapshotPointer {
	f.Helper()
	seen, err := f.sound.Pointer(f.ctx, o.Shard)
	f.must(err)
	s := f.put(o, entry, parts...)
	p, err := f.faulty.Publish(f.ctx, o, seen, s)
	f.must(err)
	return p
}

func (f *fixture) put(o store.Ownership, entry uint64, parts ...string) store.SnapshotInfo {
	f.Helper()
	s := store.SnapshotInfo{Entry: entry, Epoch: o.Revision, Parts: len(parts)}
	for i, part := range parts {
		f.must(f.faulty.PutPart(f.ctx, o, entry, i, []byte(part)))
		s.Bytes += int64(len(part))
	}
	return s
}

// wantParts asserts what is stored of all snapshots of shard 0, in the order of the keys.
func (f *fixture) wantParts(want ...string) {
	f.Helper()
	resp, err := f.raw.Get(f.ctx, f.keys.Parts(0), clientv3.WithPrefix())
	f.must(err)
	var got []string
	for _, kv := range resp.Kvs {
		got = append(got, string(kv.Value))
	}
	if !slices.Equal(got, want) {
		f.Errorf("stored parts are %q, want %q", got, want)
	}
}

// release delivers the late copies and ends the test if one had an effect: what follows might wait for what it undid.
func (f *fixture) release() {
	f.Helper()
	if n := f.faults.Release(f.ctx); n != 0 {
		f.Fatalf("%d late copies had an effect", n)
	}
}

// wantEntries asserts what the journal consists of, whatever the numbers.
func (f *fixture) wantEntries(shard int, want ...string) {
	f.Helper()
	resp, err := f.raw.Get(f.ctx, f.keys.Entry(shard, 0), clientv3.WithRange(f.keys.Entry(shard, 1<<63)))
	f.must(err)
	var got []string
	for _, kv := range resp.Kvs {
		got = append(got, string(kv.Value))
		if kv.Version != 1 {
			f.Errorf("entry %s was written %d times", kv.Key, kv.Version)
		}
	}
	if len(got) != len(want) {
		f.Fatalf("stored entries are %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			f.Errorf("stored entries are %q, want %q", got, want)
		}
	}
}

func (f *fixture) owner() store.Owner {
	f.Helper()
	m, err := f.sound.ReadMembers(f.ctx)
	f.must(err)
	return m.Owners[0]
}

func (f *fixture) absent(key string) {
	f.Helper()
	resp, err := f.raw.Get(f.ctx, key)
	f.must(err)
	if len(resp.Kvs) > 0 {
		f.Errorf("key %s is there: %q", key, resp.Kvs[0].Value)
	}
}
