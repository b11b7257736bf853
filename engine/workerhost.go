package engine

import (
	"context"
	"time"

	"taskledger/events"
	"taskledger/store"
)

// workerHost serves the attempts and offers of the node for a session: it implements worker.Host and worker.Cluster.
type workerHost struct{ m *member }

// MayStart implements worker.Host.
func (h workerHost) MayStart() bool { return h.m.mayStart() }

// Payload implements worker.Host.
func (h workerHost) Payload(ctx context.Context, shard int, ref events.Ref) (events.Payload, error) {
	return h.m.loader.PayloadAt(ctx, shard, ref)
}

// TypesDiffer implements worker.Host.
func (h workerHost) TypesDiffer(behavior string) bool {
	m := h.m
	here := typesOn(&store.NodeInfo{Behaviors: sortedKeys(m.node.behaviors), Types: m.node.types}, behavior)
	for id, n := range m.view.Load().Nodes {
		if there := typesOn(&n, behavior); id != m.session.ID && there != "" && there != here {
			return true
		}
	}
	return false
}

// View implements worker.Cluster.
func (h workerHost) View() *store.Membership { return h.m.view.Load() }

// ReadyHere implements worker.Cluster.
func (h workerHost) ReadyHere() map[string]int { return h.m.load.readyHere() }

// ReadyAt implements worker.Cluster.
func (h workerHost) ReadyAt(shard int, owner string, after time.Time) map[string]int {
	return h.m.load.readyAt(shard, owner, after)
}

// offerSlots keeps the offers of the session as they should be, until ctx ends.
func (m *member) offerSlots(ctx context.Context) error { return m.offers.Run(ctx, m.worker) }

// reconcile reports to the owners what runs here, until ctx ends.
func (m *member) reconcile(ctx context.Context) error { return m.offers.RunReconcile(ctx, m.worker) }
