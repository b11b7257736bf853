package engine

import (
	"context"
	"testing"
	"time"

	"taskledger/store"
)

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
			b := newBench(t, -1)
			p := b.m.place
			wait, given := context.WithCancel(t.Context())
			p.asked, p.given, p.busy[0] = 0, given, true
			b.store.members.Owners[0] = store.Owner{Node: c.owner, Revision: b.own.ownership.Revision}
			p.consider(t.Context(), 0, &b.store.members, time.Now(), true)
			if stopped := wait.Err() != nil; stopped != c.stops {
				t.Errorf("stopped: %v, want %v", stopped, c.stops)
			}
		})
	}
}
