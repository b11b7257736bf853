package etcdstore_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"taskledger/store"
)

// overwrite puts the node key of a session again without its lease, as a copy by hand does, under the same id or
// another one.
func (f *fixture) overwrite(session store.Session, id string) (revision int64) {
	f.Helper()
	was, err := f.raw.Get(f.ctx, f.keys.Node(session.ID))
	f.must(err)
	put, err := f.raw.Put(f.ctx, f.keys.Node(id), string(was.Kvs[0].Value))
	f.must(err)
	return put.Header.Revision
}

func TestLeaselessNodeKey_IsNoMember(t *testing.T) {
	f := newFixture(t)
	lost, other := f.join(f.sound), f.join(f.sound)
	wantOther := func(m store.Membership) {
		t.Helper()
		if !slices.Equal(slices.Collect(maps.Keys(m.Nodes)), []string{other.ID}) {
			t.Errorf("nodes are %+v, want %s alone", m.Nodes, other.ID)
		}
	}
	written := int64(0)
	for m, err := range f.sound.WatchMembers(f.ctx) {
		f.must(err)
		if written == 0 {
			f.overwrite(other, "phantom")
			written = f.overwrite(lost, lost.ID)
		}
		if m.Revision >= written {
			wantOther(m)
			break
		}
	}
	wantOther(f.membersNow())
}

// The end of a session is for ever: others may have acted on it.
func TestLeaselessNodeKey_IsNotUpdated(t *testing.T) {
	f := newFixture(t)
	session := f.join(f.sound)
	f.overwrite(session, session.ID)
	err := f.sound.Update(f.ctx, session, func() store.NodeInfo { return store.NodeInfo{Name: "n", Owner: true} })
	if !errors.Is(err, store.ErrSessionEnded) || len(f.membersNow().Nodes) != 0 {
		t.Errorf("updated: %v, nodes are %+v; want %v", err, f.membersNow().Nodes, store.ErrSessionEnded)
	}
}

// Its session is over at once, and others take its shards although the key is there.
func TestLeaselessNodeKey_OwnsNothing(t *testing.T) {
	f := newFixture(t)
	o, next := f.own(), f.join(f.sound)
	f.overwrite(o.Session, o.Session.ID)
	_, appended := f.faulty.Append(f.ctx, o, store.Head{}, []byte("late"))
	_, taken := f.faulty.Take(f.ctx, o.Session, 1, store.Owner{})
	for what, err := range map[string]error{"append": appended, "take": taken, "part of a snapshot": f.faulty.PutPart(f.ctx, o, 1, 0, nil)} {
		if !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s of a session that is over: %v, want %v", what, err, store.ErrFenced)
		}
	}
	theirs, err := f.sound.Take(f.ctx, next, 0, f.owner())
	f.must(err)
	f.append(theirs, store.Head{}, "one")
}

func TestLeaselessNodeKey_IsHandedNothing(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	f.overwrite(o.Session, "phantom")
	if err := f.faulty.HandOver(f.ctx, o, "phantom"); !errors.Is(err, store.ErrFenced) {
		t.Errorf("handed over: %v, want %v", err, store.ErrFenced)
	}
	f.append(o, store.Head{}, "one")
}
