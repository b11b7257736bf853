package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/memarchive"
	"taskledger/task"
)

// ground is an etcd with a store of two shards, the first of which gets damaged while no node runs.
type ground struct {
	etcd    *clientv3.Client
	store   store.Store
	archive *shelf // nil: none
	drop    bool
	bus     func() store.Bus // nil: none
	worker  *worker
}

func newGround(t *testing.T, mode string) *ground {
	t.Helper()
	_, etcd := testcluster.StartEtcd(t)
	store, err := etcdstore.Open(within(t), etcdstore.Config{Client: etcd, Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	g := &ground{etcd: etcd, store: store, drop: mode == "drop", worker: &worker{attempts: map[events.TaskID]int{}}}
	if mode == "archive" {
		g.archive = newShelf()
	}
	return g
}

// node runs a node until the test ends.
func (g *ground) node(t *testing.T) *engine.Node {
	t.Helper()
	c := engine.NodeConfig{Store: small{g.store}, Name: "n", TTL: time.Minute, Behaviors: []task.Behavior{g.worker}}
	if g.drop {
		c.Trimming = engine.TrimAll
	}
	if g.archive != nil {
		c.Archive = g.archive
	}
	if g.bus != nil {
		c.Bus = g.bus()
	}
	return runNode(t, c)
}

// unwilling refuses the first part of each of its first snapshots.
type unwilling struct {
	store.Store
	left atomic.Int32
}

// PutPart implements store.Snapshots.
func (r *unwilling) PutPart(ctx context.Context, o store.Ownership, entry uint64, part int, data []byte) error {
	if r.left.Add(-1) >= 0 {
		return errors.New("not now")
	}
	return r.Store.PutPart(ctx, o, entry, part, data)
}

// A snapshot is due, since the newest one is damaged; it cannot be stored at first, and nothing else happens in the
// shard.
func TestSnapshot_GivenUpIsTriedAgainThoughNothingHappens(t *testing.T) {
	t.Parallel()
	g := newGround(t, "keep")
	before := g.load(t)
	g.change(t, partKey(before.Kept[0]), flip)
	r := &unwilling{Store: g.store}
	r.left.Store(1)
	g.store = r
	g.node(t)
	testcluster.Await(t, "a sound snapshot", func() bool {
		p, err := r.Store.Pointer(within(t), 0)
		return err == nil && p.Revision > before.Revision
	})
	if r.left.Load() >= 0 {
		t.Error("no snapshot was refused")
	}
}

// load runs bulky tasks of shard 0 on a node of its own until two snapshots are kept and, unless all entries are, the
// journal is trimmed.
func (g *ground) load(t *testing.T) store.SnapshotPointer {
	t.Helper()
	t.Run("load", func(t *testing.T) {
		n := g.node(t)
		round := 0
		testcluster.Await(t, "two snapshots, and a journal that is trimmed", func() bool {
			fillShard(t, n.Client, g.worker, fmt.Sprint("load", round), 300)
			round++
			first, err := g.store.First(within(t), 0)
			if err != nil {
				t.Fatal(err)
			}
			return len(g.pointer(t).Kept) == 2 && (first > 1 || !g.drop && g.archive == nil)
		})
	})
	return g.pointer(t)
}

// fillShard is fill with tasks of shard 0 alone.
func fillShard(t *testing.T, by *engine.Client, b task.Behavior, affinity string, n int) {
	t.Helper()
	for i := 'a'; events.TaskID(affinity+"/x").Shard(2) != 0; i++ {
		affinity += string(i)
	}
	fill(t, by, b, affinity+"/", n)
}

func (g *ground) pointer(t *testing.T) store.SnapshotPointer {
	t.Helper()
	p, err := g.store.Pointer(within(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// change replaces a stored value, or removes it when f returns nil.
func (g *ground) change(t *testing.T, key string, f func(value []byte) []byte) {
	t.Helper()
	got, err := g.etcd.Get(within(t), key)
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("%s: %v, %v", key, got, err)
	}
	if value := f(bytes.Clone(got.Kvs[0].Value)); value == nil {
		_, err = g.etcd.Delete(within(t), key)
	} else {
		_, err = g.etcd.Put(within(t), key, string(value))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func partKey(s store.SnapshotInfo) string {
	return fmt.Sprintf("taskledger/snapshot/0/%016x-%d/%08x", s.Entry, s.Epoch, 0)
}

func flip(value []byte) []byte {
	value[len(value)/2] ^= 1
	return value
}

func remove([]byte) []byte { return nil }

const pointerKey = "taskledger/snapshot/0"

// wantServed waits until the shards are served and equal the fold of what is stored, and everything stored is sound.
func wantServed(t *testing.T, n *engine.Node) {
	t.Helper()
	var found []ledger.Verification
	var err error
	defer func() {
		if t.Failed() {
			t.Logf("%+v, %v", found, err)
		}
	}()
	testcluster.Await(t, "sound shards", func() bool {
		found, err = n.Ledger().Verify(within(t), ledger.VerifyOptions{})
		return err == nil && !slices.ContainsFunc(found, func(v ledger.Verification) bool { return !v.Compared || v.Problem != "" })
	})
}

// Whatever of the snapshots is damaged, the next owner serves the same state as long as anything else leads to it, and
// stores sound snapshots in place of the damaged ones. When nothing does, its shard alone is quarantined.
func TestSnapshot_DamagedIsPassedOver(t *testing.T) {
	t.Parallel()
	both := func(f func([]byte) []byte) func(*testing.T, *ground, store.SnapshotPointer) {
		return func(t *testing.T, g *ground, p store.SnapshotPointer) {
			for _, s := range p.Kept {
				g.change(t, partKey(s), f)
			}
		}
	}
	newest := func(f func([]byte) []byte) func(*testing.T, *ground, store.SnapshotPointer) {
		return func(t *testing.T, g *ground, p store.SnapshotPointer) { g.change(t, partKey(p.Kept[0]), f) }
	}
	otherHash := func(t *testing.T, g *ground, p store.SnapshotPointer) {
		g.change(t, pointerKey, func(value []byte) []byte {
			value[bytes.Index(value, p.Kept[0].Hash[:])] ^= 1
			return value
		})
	}
	garbage := func(t *testing.T, g *ground, _ store.SnapshotPointer) {
		g.change(t, pointerKey, func([]byte) []byte { return []byte("garbage") })
	}
	cut := func(t *testing.T, g *ground, p store.SnapshotPointer) {
		const journal = "taskledger/journal/0/"
		from := fmt.Sprintf("%s%016x", journal, p.Kept[0].Entry)
		if gone, err := g.etcd.Delete(within(t), from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(journal))); err != nil || gone.Deleted == 0 {
			t.Fatalf("%+v, %v", gone, err)
		}
	}
	const entries = "restore the missing entries from a backup of etcd, or, where etcd was restored to an earlier time on purpose, " +
		"give up what came after it: taskledger repair --restored"
	const snapshots = "restore the snapshots of the shard, which alone stand for the entries before, from a backup of etcd"
	for _, c := range []struct {
		name, mode string
		damage     func(*testing.T, *ground, store.SnapshotPointer)
		remedy     string // "" = nothing is lost
	}{
		{"the entries from the newest on missing", "keep", cut, entries},
		{"the entries from the newest on missing", "drop", cut, entries},
		{"a flipped byte in the newest", "drop", newest(flip), ""},
		{"a flipped byte in the newest", "keep", newest(flip), ""},
		{"a part of the newest missing", "drop", newest(remove), ""},
		{"another hash of the newest", "drop", otherHash, ""},
		{"both", "keep", both(flip), ""},
		{"both", "archive", both(remove), ""},
		{"both", "drop", both(flip), snapshots},
		{"both, and an archived entry", "archive", func(t *testing.T, g *ground, p store.SnapshotPointer) {
			both(flip)(t, g, p)
			g.archive.held.Alter(0, func(s []memarchive.Segment) []memarchive.Segment {
				rec := &s[0].Entries[len(s[0].Entries)-1] // a busy owner archives few at once
				rec.Data = flip(rec.Data)
				return s
			})
		}, "restore the archive from a backup of NATS, with all nodes stopped"},
		{"the pointer", "keep", garbage, ""},
		{"the pointer", "archive", garbage, ""},
		{"the pointer", "drop", garbage, "restore the snapshot pointer of the shard from a backup of etcd"},
	} {
		t.Run(c.name+"/"+c.mode, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, c.mode)
			before := g.load(t)
			c.damage(t, g, before)
			n := g.node(t)
			session := n.SessionID()
			if c.remedy != "" {
				remedy := "remedy: " + c.remedy + "; the shard is then served by itself"
				testcluster.Await(t, "a shard that says "+remedy, func() bool {
					infos, err := n.Operations().Shards(within(t))
					return err == nil && strings.Contains(infos[0].Problem, remedy)
				})
				wantQuarantined(t, n.Client, 0, 2, remedy)
				if found, err := n.Ledger().Verify(within(t), ledger.VerifyOptions{}); err != nil || found[0].Problem == "" {
					t.Errorf("verification: %+v, %v; want the damage", found, err)
				}
			} else {
				testcluster.Await(t, "a sound snapshot", func() bool {
					p, err := g.store.Pointer(within(t), 0)
					return err == nil && p.Revision > before.Revision && len(p.Kept) > 0 && p.Kept[0].Entry >= before.Kept[0].Entry
				})
				wantServed(t, n)
			}
			fill(t, n.Client, g.worker, string(idIn(1, 2))+"/", 1)
			if now := n.SessionID(); now != session {
				t.Errorf("session %s after %s: the node has started again", now, session)
			}
		})
	}
}

// The archive alone holds what the shard was, and is away when its next owner asks for it: the shard says so until
// it is back.
func TestSnapshot_BothDamagedWaitForAnArchiveThatIsAway(t *testing.T) {
	t.Parallel()
	for _, withBus := range []bool{true, false} {
		t.Run(fmt.Sprint("NATS: ", withBus), func(t *testing.T) {
			t.Parallel()
			g := newGround(t, "archive")
			for _, s := range g.load(t).Kept {
				g.change(t, partKey(s), flip)
			}
			client := engine.ClientConfig{Store: g.store}
			if withBus {
				url := testcluster.StartNATS(t).URL
				g.bus = func() store.Bus {
					b, err := natsbus.Open(natsbus.Config{URLs: []string{url}, Key: g.store.Cluster().Key})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = b.Close() })
					return b
				}
				client = engine.ClientConfig{Bus: g.bus(), Shards: 2}
			}
			g.archive.away.Store(true)
			n := g.node(t)
			testcluster.Await(t, "a shard that says what is away", func() bool {
				infos, err := n.Operations().Shards(within(t))
				return err == nil && strings.Contains(infos[0].Problem, errAway.Error())
			})
			const remedy = "remedy: bring the archive, NATS with JetStream, back; the shard is then served by itself"
			wantQuarantined(t, n.Client, 0, 2, remedy)
			wantQuarantined(t, runClient(t, client), 0, 2, remedy)
			g.archive.away.Store(false)
			wantServed(t, n)
			fillShard(t, n.Client, g.worker, "later", 1)
		})
	}
}

// An owner that fell back to the older snapshot does not take the damaged one for the older of its own first: trimmed
// up to that, the shard would hang by a single snapshot.
func TestSnapshot_DamagedIsNeverTheOlderOne(t *testing.T) {
	t.Parallel()
	g := newGround(t, "drop")
	before := g.load(t)
	g.change(t, partKey(before.Kept[0]), flip)
	t.Run("fall back", func(t *testing.T) {
		n := g.node(t)
		testcluster.Await(t, "a sound snapshot", func() bool { return g.pointer(t).Revision > before.Revision })
		if kept := g.pointer(t).Kept; slices.Contains(kept, before.Kept[0]) {
			t.Fatalf("kept %+v: the damaged one is among them", kept)
		}
		fillShard(t, n.Client, g.worker, "more", 900)
		testcluster.Await(t, "a trim past the damaged snapshot", func() bool {
			first, err := g.store.First(within(t), 0)
			return err == nil && first > before.Kept[0].Entry
		})
	})
	g.change(t, partKey(g.pointer(t).Kept[0]), remove)
	n := g.node(t)
	fillShard(t, n.Client, g.worker, "again", 600)
	wantServed(t, n)
}

// The older snapshot is damaged while its owner lives, which has no reason to read it. Before it trims it does.
func TestTrim_ReadsTheSnapshotsItReliesOn(t *testing.T) {
	t.Parallel()
	g := newGround(t, "drop")
	g.load(t)
	spoiling := &spoiler{Store: g.store, spoil: func(s store.SnapshotInfo) { g.change(t, partKey(s), flip) }}
	g.store = spoiling
	n := g.node(t)
	for round := 0; !spoiling.outlived(t); round++ {
		if round == 10 {
			t.Fatal("the journal is not trimmed past the damaged snapshot")
		}
		fillShard(t, n.Client, g.worker, fmt.Sprint("more", round), 300)
	}
	if p := spoiling.relied.Load(); p != nil {
		t.Errorf("trimmed by %+v, of which the older one is damaged", *p)
	}
}

// spoiler is a store in which the older snapshot is damaged as soon as the first one is published.
type spoiler struct {
	store.Store
	spoil  func(store.SnapshotInfo)
	spoilt atomic.Pointer[store.SnapshotInfo]
	relied atomic.Pointer[store.SnapshotPointer] // on the damaged one, by a trim
}

func (s *spoiler) Publish(ctx context.Context, o store.Ownership, seen store.SnapshotPointer, made store.SnapshotInfo) (store.SnapshotPointer, error) {
	p, err := s.Store.Publish(ctx, o, seen, made)
	if err == nil && o.Shard == 0 && s.spoilt.Load() == nil {
		s.spoil(p.Kept[1])
		s.spoilt.Store(&p.Kept[1])
	}
	return p, err
}

func (s *spoiler) Trim(ctx context.Context, o store.Ownership, p store.SnapshotPointer, first, until uint64) error {
	if spoilt := s.spoilt.Load(); spoilt != nil && slices.Contains(p.Kept, *spoilt) {
		s.relied.Store(&p)
	}
	return s.Store.Trim(ctx, o, p, first, until)
}

// outlived reports that the journal was trimmed past the damaged snapshot.
func (s *spoiler) outlived(t *testing.T) bool {
	first, err := s.First(within(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := s.spoilt.Load()
	return spoilt != nil && first > spoilt.Entry
}

// gate holds back the first call of an operation, and those beside it, until it is released, at the latest at the end
// of the test.
type gate struct {
	once    sync.Once
	reached chan struct{}
	open    chan struct{}
	release func()
}

func newGate(t *testing.T) *gate {
	g := &gate{reached: make(chan struct{}), open: make(chan struct{})}
	g.release = sync.OnceFunc(func() { close(g.open) })
	t.Cleanup(g.release)
	return g
}

func (g *gate) pass() {
	g.once.Do(func() {
		close(g.reached)
		<-g.open
	})
}

func (g *gate) await(t *testing.T) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(soon):
		t.Fatal("the gate is not reached")
	}
}

// lateParts is a store whose first part is put late, whatever has become of its owner by then.
type lateParts struct {
	store.Store
	*gate
	late chan error
}

func (s *lateParts) PutPart(ctx context.Context, o store.Ownership, entry uint64, part int, data []byte) error {
	s.once.Do(func() {
		close(s.reached)
		<-s.open
		s.late <- s.Store.PutPart(context.WithoutCancel(ctx), o, entry, part, data)
	})
	return s.Store.PutPart(ctx, o, entry, part, data)
}
