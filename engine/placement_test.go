package engine

import (
	"context"
	"slices"
	"testing"
	"time"

	"taskledger/engine/internal/shard"
	"taskledger/store"
)

// roster is a store that knows who is there, and nothing else.
type roster struct {
	store.Members
	now store.Membership
}

// ReadMembers implements store.Members.
func (r *roster) ReadMembers(context.Context) (store.Membership, error) { return r.now, nil }

// A node asks for a shard, and its owner dies: waiting for the answer would only delay the take-over.
func TestPlacement_StopsAskingAnOwnerThatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		owner string
		stops bool
	}{
		"owner there": {farID, false},
		"owner gone":  {"gone", true},
		"handed over": {selfID, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t).place
			wait, given := context.WithCancel(t.Context())
			p.asked, p.cancelAsk, p.busy[0] = 0, given, true
			members := present(1, selfID, farID)
			members.Owners[0] = store.Owner{Node: c.owner, Revision: 1}
			p.consider(t.Context(), 0, &members, time.Now(), true)
			if stopped := wait.Err() != nil; stopped != c.stops {
				t.Errorf("stopped: %v, want %v", stopped, c.stops)
			}
		})
	}
}

// The view is older than the node that has been given work: absence from a view is a reason to look, and no evidence.
func TestLost_AbsenceFromAViewIsNoEvidence(t *testing.T) {
	p := newPost(t)
	members := &roster{now: present(1, selfID, farID)}
	p.members = members
	own := p.owning(0, owned{behavior: workBehavior, node: farID})
	lost := func() []string {
		p.view.Store(new(present(1, selfID)))
		p.place.findLost(t.Context())
		return own.Inbox().Take(&shard.Mail{}).Lost
	}
	if nodes := lost(); len(nodes) > 0 {
		t.Fatalf("the owner is told that %v are lost", nodes)
	}
	members.now = present(2, selfID)
	if nodes := lost(); !slices.Equal(nodes, []string{farID}) {
		t.Errorf("the owner is told that %v are lost, want %s, which has ended", nodes, farID)
	}
}

// A new owner asks etcd, not its view, which of the nodes that the journal names are there.
func TestLost_ANewOwnerAsksWhoIsThere(t *testing.T) {
	p := newPost(t)
	members := &roster{now: present(1, selfID, farID)}
	p.members = members
	p.view.Store(new(present(1, selfID)))
	if gone, err := p.place.isGone(t.Context(), farID); gone || err != nil {
		t.Errorf("gone is %t, %v; the node lives", gone, err)
	}
	members.now = present(2, selfID)
	if gone, err := p.place.isGone(t.Context(), farID); !gone || err != nil {
		t.Errorf("gone is %t, %v; the node has ended", gone, err)
	}
}
