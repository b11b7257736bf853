package etcdstore_test

import (
	"errors"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

func TestPublish_IsDoneOnceWhateverIsLost(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	var last store.SnapshotPointer
	for i, fates := range [][]testcluster.Fate{
		{undelivered},
		{replyLost},
		{delayed},
		{doubled},
		{undelivered, undelivered, replyLost, doubled},
	} {
		s := f.put(o, uint64(i+1), string(rune('a'+i)))
		f.faults.Next(fates...)
		p, err := f.faulty.Publish(f.ctx, o, last, s)
		f.must(err)
		if got, want := f.faults.Sent(), len(fates)+1; got != want {
			t.Errorf("row %d: sent %d times, want %d", i, got, want)
		}
		f.release()
		f.wantPointer(p)
		last = p
	}
	f.wantParts("d", "e")
}

func TestPublish_LateDuplicateAfterTheNextIsRefused(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	first := f.snapshot(o, 1, "a")
	s := f.put(o, 2, "b")
	f.faults.Next(delayed)
	second, err := f.faulty.Publish(f.ctx, o, first, s)
	f.must(err)
	third, err := f.faulty.Publish(f.ctx, o, second, f.put(o, 3, "c"))
	f.must(err)
	f.put(o, 4, "d")
	f.release()
	f.wantPointer(third)
	f.wantParts("b", "c", "d")
}

func TestPublish_FencedWhileUnknownIsFencedForEver(t *testing.T) {
	f := newFixture(t)
	o, other := f.own(), f.join(f.sound)
	s := f.put(o, 1, "a")
	f.faults.Next(testcluster.Fate{Drop: true, Copy: true, Then: func() { f.must(f.sound.HandOver(f.ctx, o, other.ID)) }})
	if p, err := f.faulty.Publish(f.ctx, o, store.SnapshotPointer{}, s); !errors.Is(err, store.ErrFenced) {
		t.Errorf("published %+v, %v, want %v", p, err, store.ErrFenced)
	}
	f.release()
	f.wantPointer(store.SnapshotPointer{})
}

func TestPublish_FencedAfterItsReplyWasLostIsDone(t *testing.T) {
	f := newFixture(t)
	o, other := f.own(), f.join(f.sound)
	s := f.put(o, 1, "a")
	lost := replyLost
	lost.Then = func() { f.must(f.sound.HandOver(f.ctx, o, other.ID)) }
	f.faults.Next(lost)
	p, err := f.faulty.Publish(f.ctx, o, store.SnapshotPointer{}, s)
	f.must(err)
	f.wantPointer(p)
}

func TestPutPart_IsDoneOnceWhateverIsLost(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	for i, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		f.faults.Next(fate)
		f.must(f.faulty.PutPart(f.ctx, o, 1, i, []byte{byte('a' + i)}))
		f.release()
	}
	f.wantParts("a", "b", "c", "d")
}

// The copy comes when its snapshot is gone: nobody reads the part, and the next pointer removes it.
func TestPutPart_LateDuplicateIsRemovedByTheNextPublish(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	f.faults.Next(delayed)
	f.snapshot(o, 1, "a")
	f.snapshot(o, 2, "b")
	third := f.snapshot(o, 3, "c")
	if n := f.faults.Release(f.ctx); n != 1 {
		t.Fatalf("%d late copies had an effect, want 1", n)
	}
	f.wantParts("a", "b", "c")
	f.wantPointer(third)
	f.snapshot(o, 4, "d")
	f.wantParts("c", "d")
}

// The owner gave a snapshot up, and takes another of the same entry: a copy of a part of the first never takes the
// place of one of the second.
func TestPutPart_LateDuplicateNeverReplacesAPart(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	f.faults.Next(delayed)
	f.must(f.faulty.PutPart(f.ctx, o, 2, 0, []byte("given up")))
	f.snapshot(o, 1, "one") // removes it
	second := f.snapshot(o, 2, "two")
	f.release()
	f.wantPointer(second)
	f.wantParts("one", "two")
}

// A late copy makes a part beyond those that the pointer counts.
func TestPublish_RemovesWhatLiesBeyondTheLastPart(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	f.put(o, 1, "a", "b", "given up")
	s := store.SnapshotInfo{Entry: 1, Epoch: o.Revision, Parts: 2}
	_, err := f.faulty.Publish(f.ctx, o, store.SnapshotPointer{}, s)
	f.must(err)
	f.wantParts("a", "b")
}

func TestPointer_OneThatCannotBeReadIsDamaged(t *testing.T) {
	f := newFixture(t)
	for _, value := range []string{"garbage", "\x92\x02\x90", "\x92\x01\x90"} {
		_, err := f.raw.Put(f.ctx, f.keys.Pointer(0), value)
		f.must(err)
		if p, err := f.sound.Pointer(f.ctx, 0); !errors.Is(err, events.ErrDamaged) {
			t.Errorf("pointer %q is %+v, %v, want %v", value, p, err, events.ErrDamaged)
		}
	}
}

func (f *fixture) wantPointer(want store.SnapshotPointer) {
	f.Helper()
	got, err := f.sound.Pointer(f.ctx, 0)
	f.must(err)
	if got.Revision != want.Revision || len(got.Kept) != len(want.Kept) {
		f.Fatalf("pointer is %+v, want %+v", got, want)
	}
	for i := range want.Kept {
		if got.Kept[i] != want.Kept[i] {
			f.Errorf("pointer is %+v, want %+v", got, want)
		}
	}
}
