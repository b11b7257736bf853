package etcdstore_test

import (
	"errors"
	"testing"
	"time"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

func TestTake_LostReplyIsOneOwnership(t *testing.T) {
	f := newFixture(t)
	session, seen := f.join(f.faulty), store.Owner{}
	for _, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		f.faults.Next(fate)
		o, err := f.faulty.Take(f.ctx, session, 0, seen)
		f.must(err)
		if got := f.owner(); got != (store.Owner{Node: session.ID, Revision: o.Revision}) {
			t.Errorf("owner is %+v, ownership %+v", got, o)
		}
		f.release()
		f.must(f.faulty.Leave(f.ctx, session))
		session, seen = f.join(f.faulty), f.owner()
	}
}

func TestTake_LateCopyAfterHandOverDoesNotTakeBack(t *testing.T) {
	f := newFixture(t)
	session, other := f.join(f.faulty), f.join(f.sound)
	f.faults.Next(delayed)
	o, err := f.faulty.Take(f.ctx, session, 0, store.Owner{})
	f.must(err)
	f.must(f.faulty.HandOver(f.ctx, o, other.ID))
	handed := f.owner()
	f.release()
	if got := f.owner(); got != handed || got.Node != other.ID {
		t.Errorf("owner is %+v, was %+v", got, handed)
	}
}

func TestTake_LateCopyAfterTheShardWentRoundIsHarmless(t *testing.T) {
	f := newFixture(t)
	dead := f.own()
	f.must(f.faulty.Leave(f.ctx, dead.Session))
	session, other := f.join(f.faulty), f.join(f.sound)
	f.faults.Next(doubled)
	o, err := f.faulty.Take(f.ctx, session, 0, f.owner())
	f.must(err)
	f.must(f.faulty.HandOver(f.ctx, o, other.ID))
	f.must(f.sound.HandOver(f.ctx, store.Ownership{Revision: f.owner().Revision, Session: other}, session.ID))
	before := f.owner()
	f.release()
	if got := f.owner(); got != before {
		t.Errorf("owner is %+v, was %+v: an epoch ended without a hand-over", got, before)
	}
}

func TestTake_LostReplyThenHandedOverIsFenced(t *testing.T) {
	f := newFixture(t)
	session, other := f.join(f.faulty), f.join(f.sound)
	lost := replyLost
	lost.Then = func() {
		f.must(f.sound.HandOver(f.ctx, store.Ownership{Revision: f.owner().Revision, Session: session}, other.ID))
	}
	f.faults.Next(lost)
	if o, err := f.faulty.Take(f.ctx, session, 0, store.Owner{}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("took %+v, error %v, want %v", o, err, store.ErrFenced)
	}
}

func TestHandOver_IsDoneOnceWhateverIsLost(t *testing.T) {
	f := newFixture(t)
	o, other := f.own(), f.join(f.sound)
	for _, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		f.faults.Next(fate)
		f.must(f.faulty.HandOver(f.ctx, o, other.ID))
		handed := f.owner()
		if handed.Node != other.ID {
			t.Fatalf("owner is %+v, want %s", handed, other.ID)
		}
		f.must(f.sound.HandOver(f.ctx, store.Ownership{Revision: handed.Revision, Session: other}, o.Session.ID))
		back := f.owner()
		f.release()
		if got := f.owner(); got != back {
			t.Errorf("owner is %+v, was %+v: a late copy handed over again", got, back)
		}
		o.Revision = back.Revision
	}
}

func TestJoin_IsOneSessionWhateverIsLost(t *testing.T) {
	f := newFixture(t)
	for _, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		f.faults.Next(fate)
		session := f.join(f.faulty)
		m, err := f.sound.ReadMembers(f.ctx)
		f.must(err)
		if len(m.Nodes) != 1 || m.Nodes[session.ID].Revision != session.Revision {
			t.Errorf("nodes are %+v, want the session %+v", m.Nodes, session)
		}
		f.must(f.faulty.Leave(f.ctx, session))
		f.release()
		f.absent(f.keys.Node(session.ID))
	}
}

func TestJoin_LeaseGoneBeforeTheKeyIsNoSession(t *testing.T) {
	f := newFixture(t)
	f.faults.Next(testcluster.Fate{Drop: true, Then: func() {
		leases, err := f.raw.Leases(f.ctx)
		f.must(err)
		for _, lease := range leases.Leases {
			_, err := f.raw.Revoke(f.ctx, lease.ID)
			f.must(err)
		}
	}})
	if s, err := f.faulty.Join(f.ctx, store.NodeInfo{}, time.Minute); !errors.Is(err, store.ErrSessionEnded) {
		t.Errorf("joined as %+v, error %v, want %v", s, err, store.ErrSessionEnded)
	}
}

func TestUpdate_LateCopyDoesNotUndoALaterOne(t *testing.T) {
	f := newFixture(t)
	session := f.join(f.faulty)
	for _, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		f.faults.Next(fate)
		f.must(f.faulty.Update(f.ctx, session, func() store.NodeInfo { return store.NodeInfo{Name: "early"} }))
		f.must(f.faulty.Update(f.ctx, session, func() store.NodeInfo { return store.NodeInfo{Name: "later", Draining: true} }))
		f.release()
		m, err := f.sound.ReadMembers(f.ctx)
		f.must(err)
		if got := m.Nodes[session.ID]; got.Name != "later" || !got.Draining {
			t.Errorf("node is %+v: an earlier update came back", got)
		}
	}
}

// The value tells the time, so a copy that is sent again must not say what was the case when the first one was.
func TestUpdate_EveryCopySaysWhatIsTheCaseWhenItIsSent(t *testing.T) {
	f := newFixture(t)
	session := f.join(f.faulty)
	for _, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		name := "early"
		fate.Then = func() { name = "later" }
		f.faults.Next(fate)
		f.must(f.faulty.Update(f.ctx, session, func() store.NodeInfo { return store.NodeInfo{Name: name} }))
		f.release()
		m, err := f.sound.ReadMembers(f.ctx)
		f.must(err)
		if got := m.Nodes[session.ID]; got.Name != "later" {
			t.Errorf("node is %+v: its last copy was made before the first had failed", got)
		}
	}
}

func TestUpdate_LateCopyAfterLeaveMakesNoNode(t *testing.T) {
	f := newFixture(t)
	session := f.join(f.faulty)
	f.faults.Next(delayed)
	f.must(f.faulty.Update(f.ctx, session, func() store.NodeInfo { return store.NodeInfo{Name: "x"} }))
	f.must(f.faulty.Leave(f.ctx, session))
	f.release()
	f.absent(f.keys.Node(session.ID))
}

func TestOpen_LostReplyIsOneCluster(t *testing.T) {
	f := newFixture(t)
	for name, fate := range map[string]testcluster.Fate{"a": undelivered, "b": replyLost, "c": delayed, "d": doubled} {
		f.faults.Next(fate)
		s, err := etcdstore.Open(f.ctx, etcdstore.Config{Cluster: name, Client: f.client})
		f.must(err)
		f.release()
		again := openStore(t, etcdstore.Config{Cluster: name, Client: f.raw})
		if s.Cluster().ID != again.Cluster().ID {
			t.Errorf("%s: cluster is %s, then %s", name, s.Cluster().ID, again.Cluster().ID)
		}
	}
}
