package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/internal/testcluster"
	"taskledger/store"
)

// covered appends entries 1 to n to shard 0 and covers n-1 by two snapshots.
func (f *fixture) covered(o store.Ownership, n int) (store.Head, store.SnapshotPointer) {
	f.Helper()
	head := store.Head{}
	for i := 1; i <= n; i++ {
		head = f.append(o, head, fmt.Sprint(i))
	}
	f.snapshot(o, uint64(n-1), "older")
	return head, f.snapshot(o, uint64(n), "newer")
}

func (f *fixture) wantFirst(want uint64) {
	f.Helper()
	if first, err := f.sound.First(f.ctx, 0); first != want || err != nil {
		f.Errorf("first entry is %d, %v, want %d", first, err, want)
	}
}

func TestTrim_RemovesTheSameWhateverIsLost(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	head, p := f.covered(o, 6)
	for i, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		until := uint64(i + 2)
		f.faults.Next(fate)
		f.must(f.faulty.Trim(f.ctx, o, p, until-1, until))
		f.wantFirst(until)
		f.faults.Release(f.ctx)
		f.wantFirst(until)
	}
	f.append(o, head, "7")
	f.wantEntries(0, "5", "6", "7")
}

func TestTrim_LateCopyFromBeforeAHandOverIsRefused(t *testing.T) {
	f := newFixture(t)
	o, other := f.own(), f.join(f.sound)
	_, p := f.covered(o, 3)
	ctx, cancel := context.WithCancel(f.ctx)
	late := delayed
	late.Then = cancel
	f.faults.Next(late)
	if err := f.faulty.Trim(ctx, o, p, 1, 2); err == nil {
		t.Error("a trim of unknown outcome has no error")
	}
	f.must(f.faulty.HandOver(f.ctx, o, other.ID))
	f.release()
	f.wantFirst(1)
}

// It ends after the first of three pieces.
func TestTrim_InterruptedIsFinishedByTheNext(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	for from := 1; from <= 2100; from += 100 { // as entries, which no owner writes so fast
		var puts []clientv3.Op
		for i := from; i < from+100; i++ {
			puts = append(puts, clientv3.OpPut(f.keys.Entry(0, uint64(i)), fmt.Sprint(i)))
		}
		_, err := f.raw.Txn(f.ctx).Then(puts...).Commit()
		f.must(err)
	}
	f.snapshot(o, 2099, "older")
	p := f.snapshot(o, 2100, "newer")
	ctx, cancel := context.WithCancel(f.ctx)
	f.faults.Next(testcluster.Fate{Then: cancel})
	if err := f.faulty.Trim(ctx, o, p, 1, 2099); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted trim: %v, want %v", err, context.Canceled)
	}
	f.wantFirst(1001)
	f.faults.Next()
	f.must(f.faulty.Trim(f.ctx, o, p, 1001, 2099))
	if n := f.faults.Sent(); n != 2 {
		t.Errorf("%d pieces, want 2", n)
	}
	f.wantEntries(0, "2099", "2100")
	f.wantFirst(2099)
}
