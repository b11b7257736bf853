package engine

import (
	"fmt"
	"sync/atomic"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/store"
)

// membership holds the nodes and owners of the cluster, as the store showed them last.
type membership struct {
	members store.Members
	view    atomic.Pointer[store.Membership]
	sighted atomic.Pointer[command.Sightings]
}

// begin shows nobody until the store was read.
func (m *membership) begin() {
	m.view.Store(&store.Membership{})
	m.sighted.Store(&command.Sightings{})
}

// take makes a membership the view, and returns the view before, or nil where a later view is there already. The
// error wraps store.ErrSessionEnded when the membership lacks the session.
func (m *membership) take(v *store.Membership, session store.Session) (before *store.Membership, err error) {
	for {
		before = m.view.Load()
		if v.Revision < before.Revision {
			return nil, nil
		}
		if _, present := v.Nodes[session.ID]; !present && v.Revision >= session.Revision {
			return nil, fmt.Errorf("%w: the node key is gone or has lost its lease", store.ErrSessionEnded)
		}
		if m.view.CompareAndSwap(before, v) {
			return before, nil
		}
	}
}

// sight notes that the nodes of a membership were seen at a time. Of a node that it lacks the time before stays if its
// attempts are served.
func (m *membership) sight(at events.Millis, v *store.Membership, served func(node string) bool) {
	for {
		seen := m.sighted.Load()
		next := seen.After(at, v.Nodes, served)
		if m.sighted.CompareAndSwap(seen, &next) {
			return
		}
	}
}
