package etcdstore_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/internal/faultstore"
	"taskledger/internal/testcluster"
	"taskledger/internal/wire"
)

const cluster = "test"

// fixture is a cluster with one store behind faults and one that works.
type fixture struct {
	*testing.T
	ctx           context.Context
	keys          etcdstore.Keys
	raw           *clientv3.Client // to look and tamper
	client        *clientv3.Client // behind faults
	faults        *faultstore.Faults
	faulty, sound *etcdstore.Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	endpoint, raw := testcluster.StartEtcd(t)
	client := dial(t, endpoint)
	f := &fixture{T: t, ctx: ctx, keys: etcdstore.KeysOf(cluster), raw: raw, client: client, faults: faultstore.Install(client)}
	f.faulty = openStore(t, etcdstore.Config{Cluster: cluster, Client: client})
	f.sound = openStore(t, etcdstore.Config{Cluster: cluster, Client: raw})
	return f
}

func dial(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func openStore(t *testing.T, cfg etcdstore.Config) *etcdstore.Store {
	t.Helper()
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

func (f *fixture) join(s *etcdstore.Store) engine.Session {
	f.Helper()
	session, err := s.Join(f.ctx, engine.NodeInfo{Name: "n", Owner: true}, time.Minute)
	f.must(err)
	return session
}

// own takes shard 0 of the fresh cluster through the faulty store.
func (f *fixture) own() engine.Ownership {
	f.Helper()
	o, err := f.faulty.Take(f.ctx, f.join(f.faulty), 0, engine.Owner{})
	f.must(err)
	return o
}

func (f *fixture) append(o engine.Ownership, after engine.Head, entry string) engine.Head {
	f.Helper()
	rev, err := f.faulty.Append(f.ctx, o, after, []byte(entry))
	f.must(err)
	return engine.Head{Number: after.Number + 1, Revision: rev}
}

// snapshot and trim do to shard 0 what bounds the journal.
func (f *fixture) snapshot(shard int, entry uint64) {
	f.Helper()
	_, err := f.raw.Put(f.ctx, f.keys.Pointer(shard), string(pointer(entry)))
	f.must(err)
}

func (f *fixture) trim(shard int, below uint64) {
	f.Helper()
	_, err := f.raw.Delete(f.ctx, f.keys.Entry(shard, 0), clientv3.WithRange(f.keys.Entry(shard, below)))
	f.must(err)
}

func pointer(entry uint64) []byte {
	var w wire.Writer
	w.Array(2)
	w.Uint(1)
	w.Array(1)
	w.Array(3)
	w.Uint(entry)
	w.Int(77)
	w.Uint(1)
	return w.B
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

func (f *fixture) owner() engine.Owner {
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
