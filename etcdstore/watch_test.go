package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

func TestFollow_GoesOnAfterCompaction(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	head := f.append(o, store.Head{}, "1")
	next, stop := iter.Pull2(f.sound.Follow(f.ctx, 0, 1))
	defer stop()
	f.wantNext(next, "1")
	// The watch is not open yet, and what it would start from is compacted.
	for i := 2; i <= 40; i++ {
		head = f.append(o, head, fmt.Sprint(i))
	}
	_, err := f.raw.Compact(f.ctx, head.Revision)
	f.must(err)
	for i := 2; i <= 40; i++ {
		f.wantNext(next, fmt.Sprint(i))
	}
	f.append(o, head, "41")
	f.wantNext(next, "41")
}

func (f *fixture) wantNext(next func() (store.Record, error, bool), want string) {
	f.Helper()
	r, err, ok := next()
	if err != nil || !ok || string(r.Data) != want {
		f.Fatalf("got entry %+v %q, %v, %v, want %q", r.Head, r.Data, err, ok, want)
	}
}

func TestBatches_MissNothingBetweenListingAndWatch(t *testing.T) {
	f := newFixture(t)
	f.post("one")
	next, stop := iter.Pull2(f.sound.Batches(f.ctx, 0))
	defer stop()
	for _, want := range []string{"one", "two"} {
		if l, err, ok := next(); err != nil || !ok || string(l.Batch) != want {
			t.Fatalf("got batch %q, %v, %v, want %q", l.Batch, err, ok, want)
		}
		f.post("two") // by one write, the very next revision
	}
}

func TestWatchMembers_GoesOnAfterCompaction(t *testing.T) {
	f := newFixture(t)
	next, stop := iter.Pull2(f.sound.WatchMembers(f.ctx))
	defer stop()
	if _, err, ok := next(); err != nil || !ok {
		t.Fatal(err)
	}
	session := f.join(f.faulty)
	f.must(f.faulty.Update(f.ctx, session, func() store.NodeInfo { return store.NodeInfo{Name: "x"} }))
	_, err := f.raw.Compact(f.ctx, f.membersRevision())
	f.must(err)
	m, err, _ := next()
	f.must(err)
	if m.Nodes[session.ID].Name != "x" {
		t.Errorf("nodes are %+v", m.Nodes)
	}
}

func (f *fixture) membersRevision() int64 { return f.membersNow().Revision }

func (f *fixture) membersNow() store.Membership {
	f.Helper()
	m, err := f.sound.ReadMembers(f.ctx)
	f.must(err)
	return m
}

func TestMembers_UnreadableKeysAreShownAsFarAsPossible(t *testing.T) {
	f := newFixture(t)
	lease, err := f.raw.Grant(f.ctx, 60)
	f.must(err)
	_, err = f.raw.Put(f.ctx, f.keys.Node("later"), "\x92\x02\xc0", clientv3.WithLease(lease.ID))
	f.must(err)
	for _, key := range []string{f.keys.Node("leaseless"), f.keys.Owner(3), f.keys.Owner(99), f.keys.Owner(-1), f.keys.Owner(0) + "4", f.keys.Owner(0) + "x", f.keys.Node("")} {
		_, err := f.raw.Put(f.ctx, key, "\x92\x02\xc0")
		f.must(err)
	}
	m, err := f.sound.ReadMembers(f.ctx)
	f.must(err)
	if n := m.Nodes["later"]; n.ID != "later" || n.Revision == 0 || len(m.Nodes) != 1 {
		t.Errorf("nodes are %+v, want one of a later version", m.Nodes)
	}
	seen := m.Owners[3]
	if seen.Revision == 0 || seen.Node != "" || len(m.Owners) != 1 {
		t.Errorf("owners are %+v, want one of shard 3 without a name", m.Owners)
	}
	session := f.join(f.sound)
	o, err := f.sound.Take(f.ctx, session, 3, seen)
	f.must(err)
	if now := f.membersNow().Owners[3]; now != (store.Owner{Node: session.ID, Revision: o.Revision}) {
		t.Errorf("owner is %+v, want %+v", now, o)
	}
	if _, err := f.sound.Take(f.ctx, f.join(f.sound), 3, seen); !errors.Is(err, store.ErrFenced) {
		t.Errorf("take on an old view: %v, want %v", err, store.ErrFenced)
	}
}

func TestStore_SurvivesLostConnections(t *testing.T) {
	t.Parallel()
	endpoint, raw := testcluster.StartEtcd(t)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	link := testcluster.NewLink(t)
	link.Lead(endpoint)
	far := openStore(t, etcdstore.Config{Endpoints: []string{link.Address}, RequestTimeout: time.Second})
	near := openStore(t, etcdstore.Config{Client: raw})
	f := &fixture{T: t, ctx: ctx, faulty: near}
	o := f.own()

	entries, stopEntries := iter.Pull2(far.Follow(ctx, 0, 1))
	defer stopEntries()
	members, stopMembers := iter.Pull2(far.WatchMembers(ctx))
	defer stopMembers()
	head := f.append(o, store.Head{}, "one")
	f.wantNext(entries, "one")
	if _, err, _ := members(); err != nil {
		t.Fatal(err)
	}

	link.Lead("")
	head = f.append(o, head, "two")
	session := f.join(near)
	for { // it says that etcd is away, and goes on
		m, err, ok := members()
		if !ok {
			t.Fatal("members ended")
		}
		if err != nil {
			link.Lead(endpoint)
			continue
		}
		if _, ok := m.Nodes[session.ID]; ok {
			break
		}
	}
	f.wantNext(entries, "two")
	f.append(o, head, "three")
	f.wantNext(entries, "three")
}

func TestStore_ClosedStoreFailsAtOnce(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	s := openStore(t, etcdstore.Config{Endpoints: []string{endpoint}})
	f := &fixture{T: t, ctx: t.Context(), faulty: s}
	o := f.own()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Shorter than etcd's own retries: what waits for them fails with the deadline.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.Append(ctx, o, store.Head{}, []byte("one")); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("append: %v", err)
	}
	for r, err := range s.Follow(ctx, 0, 1) {
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("follow: %+v, %v", r, err)
		}
	}
	for m, err := range s.WatchMembers(ctx) {
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("members: %+v, %v", m, err)
		}
	}
	if ctx.Err() != nil {
		t.Error("waited for the deadline")
	}
}
