package etcdstore_test

import (
	"errors"
	"testing"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/store"
)

// More is written while a node joins that has read what was written before.
func TestJoin_OfAnOldProgramDuringARaiseIsRefused(t *testing.T) {
	f := newFixture(t)
	need := store.Reads{Kind: 50, Entry: 4, Snapshot: 3, Rules: 1}
	late := undelivered
	late.Then = func() { f.must(f.sound.Raise(f.ctx, need)) }
	f.faults.Next(late)
	if _, err := f.faulty.Join(f.ctx, store.NodeInfo{Name: "old", Reads: store.Reads{Kind: 49, Entry: 4, Snapshot: 3}}, time.Minute); !errors.Is(err, store.ErrOutdated) {
		t.Errorf("join: %v, want %v", err, store.ErrOutdated)
	}
	m, err := f.sound.ReadMembers(f.ctx)
	f.must(err)
	if len(m.Nodes) != 0 || m.Written != need {
		t.Errorf("members are %+v", m)
	}
	f.must(func() error {
		late.Then = func() { f.must(f.sound.Raise(f.ctx, store.Reads{Kind: 51})) }
		f.faults.Next(late)
		_, err := f.faulty.Join(f.ctx, store.NodeInfo{Name: "new", Reads: store.Reads{Kind: 51, Entry: 4, Snapshot: 3}}, time.Minute)
		return err
	}())
}

func TestRaise_HoldsWhateverIsLost(t *testing.T) {
	f := newFixture(t)
	var want store.Reads
	for i, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		need := store.Reads{Kind: 50, Entry: uint64(10 + i), Snapshot: 3, Rules: 1}
		f.faults.Next(fate)
		f.must(f.faulty.Raise(f.ctx, need))
		want = store.Reads{Kind: 60, Entry: need.Entry, Snapshot: uint64(20 + i), Rules: uint64(30 + i)}
		f.must(f.sound.Raise(f.ctx, want))
		f.release()
		m, err := f.sound.ReadMembers(f.ctx)
		f.must(err)
		if m.Written != want {
			t.Errorf("written is %+v after late copies, want %+v", m.Written, want)
		}
	}
}
