package etcdstore_test

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"taskledger/internal/testcluster"
	"taskledger/store"
)

// The ways in which a write can go wrong without its sender learning what happened.
var (
	undelivered = testcluster.Fate{Drop: true}
	replyLost   = testcluster.Fate{Err: testcluster.ErrLost}
	delayed     = testcluster.Fate{Drop: true, Copy: true}
	doubled     = testcluster.Fate{Err: testcluster.ErrLost, Copy: true}
)

func TestAppend_IsCommittedOnceWhateverIsLost(t *testing.T) {
	f := newFixture(t)
	o, head := f.own(), store.Head{}
	for i, fates := range [][]testcluster.Fate{
		{undelivered},
		{replyLost},
		{delayed},
		{doubled},
		{undelivered, undelivered, replyLost, doubled},
	} {
		f.faults.Next(fates...)
		head = f.append(o, head, string(rune('a'+i)))
		if got, want := f.faults.Sent(), len(fates)+1; got != want {
			t.Errorf("row %d: sent %d times, want %d", i, got, want)
		}
		f.release()
	}
	f.wantEntries(0, "a", "b", "c", "d", "e")
}

func TestAppend_LostReplyReturnsTheRevisionOfTheEntry(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	f.faults.Next(replyLost)
	head := f.append(o, store.Head{}, "one")
	for r, err := range f.sound.Read(f.ctx, 0, 1) {
		if err != nil || r.Head != head {
			t.Errorf("stored is %+v, %v, want %+v", r.Head, err, head)
		}
	}
	f.append(o, head, "two")
}

func TestAppend_LateDuplicateAfterTrimIsRefused(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	f.faults.Next(delayed)
	one := f.append(o, store.Head{}, "one")
	f.faults.Next(doubled)
	two := f.append(o, one, "two")
	three := f.append(o, two, "three")
	f.append(o, three, "four")
	f.snapshot(o, 3, "a")
	f.must(f.faulty.Trim(f.ctx, o, f.snapshot(o, 4, "b"), 1, 3))
	f.release()
	f.wantEntries(0, "three", "four")
}

func TestAppend_LateDuplicateAfterHandOverBackAndForthIsRefused(t *testing.T) {
	f := newFixture(t)
	o, other := f.own(), f.join(f.sound)
	f.faults.Next(delayed)
	one := f.append(o, store.Head{}, "one")
	f.must(f.faulty.HandOver(f.ctx, o, other.ID))
	theirs := store.Ownership{Revision: f.owner().Revision, Session: other}
	rev, err := f.sound.Append(f.ctx, theirs, one, []byte("two"))
	f.must(err)
	f.must(f.sound.HandOver(f.ctx, theirs, o.Session.ID))
	o.Revision = f.owner().Revision
	f.append(o, store.Head{Number: 2, Revision: rev}, "three")
	f.release()
	f.wantEntries(0, "one", "two", "three")
}

func TestAppend_NeverAnsweredIsNeitherCommittedNorRefused(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	ctx, cancel := context.WithCancel(f.ctx)
	late := delayed
	late.Then = cancel
	f.faults.Next(late)
	_, err := f.faulty.Append(ctx, o, store.Head{}, []byte("one"))
	for _, definite := range []error{store.ErrFenced, store.ErrMoved, store.ErrRefused} {
		if err == nil || errors.Is(err, definite) {
			t.Errorf("error is %v, which is definite", err)
		}
	}
	f.wantEntries(0)
	if n := f.faults.Release(f.ctx); n != 1 {
		t.Errorf("%d late copies had an effect, want 1", n)
	}
	f.append(o, store.Head{}, "one")
	f.wantEntries(0, "one")
}

func TestAppend_FencedWhileUnknownIsFencedForEver(t *testing.T) {
	f := newFixture(t)
	o, other := f.own(), f.join(f.sound)
	f.faults.Next(testcluster.Fate{Drop: true, Copy: true, Then: func() { f.must(f.sound.HandOver(f.ctx, o, other.ID)) }})
	if _, err := f.faulty.Append(f.ctx, o, store.Head{}, []byte("one")); !errors.Is(err, store.ErrFenced) {
		t.Errorf("error is %v, want %v", err, store.ErrFenced)
	}
	f.release()
	f.wantEntries(0)
}

func TestAppend_FencedAfterACommitWithLostReplyIsCommitted(t *testing.T) {
	f := newFixture(t)
	o, other := f.own(), f.join(f.sound)
	lost := replyLost
	lost.Then = func() { f.must(f.sound.HandOver(f.ctx, o, other.ID)) }
	f.faults.Next(lost)
	f.append(o, store.Head{}, "one")
	f.wantEntries(0, "one")
}

func TestAppend_RefusalIsDefiniteOnlyForTheFirstCopy(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	refusal := testcluster.Fate{Drop: true, Err: rpctypes.ErrPermissionDenied}
	f.faults.Next(refusal)
	if _, err := f.faulty.Append(f.ctx, o, store.Head{}, []byte("one")); !errors.Is(err, store.ErrRefused) {
		t.Errorf("refused at once: %v, want %v", err, store.ErrRefused)
	}
	f.faults.Next(replyLost, refusal)
	f.append(o, store.Head{}, "one")
	if n := f.faults.Sent(); n != 3 {
		t.Errorf("sent %d times, want 3", n)
	}
	f.wantEntries(0, "one")
}

// By etcd, which takes 1.5 MiB, and by its client, which takes 2.
func TestAppend_TooLargeForEtcdIsRefusedAsSuch(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	for _, size := range []int{1700 << 10, 3 << 20} {
		if _, err := f.sound.Append(f.ctx, o, store.Head{}, make([]byte, size)); !errors.Is(err, store.ErrRefused) || !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("%d bytes: %v, want %v, %v", size, err, store.ErrRefused, store.ErrTooLarge)
		}
	}
	f.faults.Next(testcluster.Fate{Drop: true, Err: rpctypes.ErrPermissionDenied})
	if _, err := f.faulty.Append(f.ctx, o, store.Head{}, []byte("one")); errors.Is(err, store.ErrTooLarge) {
		t.Errorf("another refusal: %v", err)
	}
	f.append(o, store.Head{}, "one")
	f.wantEntries(0, "one")
}

func TestAppend_OtherErrorsAreUnknown(t *testing.T) {
	f := newFixture(t)
	o, head := f.own(), store.Head{}
	for _, err := range []error{rpctypes.ErrNoSpace, rpctypes.ErrTooManyRequests, rpctypes.ErrTimeout, rpctypes.ErrLeaderChanged,
		rpctypes.ErrAuthOldRevision, rpctypes.ErrInvalidAuthToken, context.DeadlineExceeded, errors.New("connection reset")} {
		f.faults.Next(testcluster.Fate{Err: err})
		head = f.append(o, head, err.Error())
	}
	if head.Number != 8 {
		t.Errorf("last entry is %d, want 8", head.Number)
	}
}

func TestAppend_DamagedSnapshotPointerDecidesNothing(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	one := f.append(o, store.Head{}, "one")
	_, err := f.raw.Put(f.ctx, f.keys.Pointer(0), "garbage")
	f.must(err)
	f.must(f.faulty.Leave(f.ctx, o.Session))
	if _, err := f.faulty.Append(f.ctx, o, one, []byte("two")); !errors.Is(err, store.ErrMoved) {
		t.Errorf("error is %v, want %v", err, store.ErrMoved)
	}
}
