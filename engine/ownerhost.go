package engine

import (
	"context"
	"fmt"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/engine/internal/outcome"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/slots"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// ownerHost serves the owners of a session: it implements the interfaces of package shard.
type ownerHost struct{ m *member }

// ownerConfig returns what the owners of a session share.
func (m *member) ownerConfig() *shard.Config {
	h := ownerHost{m}
	return &shard.Config{
		Host:      h,
		Slots:     h,
		Effects:   h,
		Admission: h,
		Explainer: h,
		Placement: h,
		Archiver:  h,

		Extensions: ownerExtensions(m.settingsShard(), m.learnSettings, h.hints, m.cfg.Name, m.cfg.Zones, m.node.sweep),

		Loader:  m.loader,
		Owners:  m.owners,
		Members: m.members,
		Shards:  m.shards,
		Cluster: m.cfg.Store.Cluster().ID,
		TTL:     m.ttl,
		Drops:   m.cfg.Trimming == TrimAll,
		Now:     m.cfg.Now,
		Log:     m.log,
		Notices: m.notices,
		Meter:   m.cfg.Meter,
	}
}

// MayStart implements shard.Host.
func (h ownerHost) MayStart() bool { return h.m.mayStart() }

// View implements shard.Host.
func (h ownerHost) View() *store.Membership { return h.m.view.Load() }

// Sighted implements shard.Host.
func (h ownerHost) Sighted() command.Sightings { return *h.m.sighted.Load() }

// Readable implements shard.Host.
func (h ownerHost) Readable(ctx context.Context, kind events.Kind) error {
	return h.m.readable(ctx, kind)
}

// Spawn implements shard.Host.
func (h ownerHost) Spawn(f func(context.Context)) { h.m.spawn(f) }

// Runs implements shard.Slots.
func (h ownerHost) Runs(behavior string) bool { return h.m.exec.Runs(behavior) }

// FreeFor implements shard.Slots.
func (h ownerHost) FreeFor(w slots.Waiter, heads []slots.Head, free []bool) []bool {
	return h.m.exec.FreeFor(w, heads, free)
}

// Take implements shard.Slots.
func (h ownerHost) Take(w slots.Waiter, head slots.Head) bool { return h.m.exec.Take(w, head) }

// Untake implements shard.Slots.
func (h ownerHost) Untake(behavior string) { h.m.exec.Untake(behavior) }

// Await implements shard.Slots.
func (h ownerHost) Await(w slots.Waiter, heads []slots.Head) {
	if len(heads) == 0 {
		h.m.exec.Leave(w)
	} else {
		h.m.exec.Await(w, heads)
	}
}

// Launch implements shard.Effects.
func (h ownerHost) Launch(shard int, a command.Assignment) { h.m.exec.Launch(h.m.worker, shard, a) }

// Cancel implements shard.Effects.
func (h ownerHost) Cancel(shard int, c shard.Cancel) { h.m.cancelAttempt(shard, c) }

// Announce implements shard.Effects.
func (h ownerHost) Announce(shard int, outcomes []outcome.Outcome) { h.m.announce(shard, outcomes) }

// hints returns what sends hints of a name, also to this process.
func (h ownerHost) hints(name string) sendHint {
	return func(sender string, data []byte) {
		if sender == h.m.sender.ID() {
			h.m.node.extensions.hinted(name, data, h.m.log)
			return
		}
		h.m.sender.Hint(hintSubject(sender, name), "", data)
	}
}

// Refusal implements shard.Admission.
func (h ownerHost) Refusal() string { return *h.m.admission.refusal.Load() }

// Usage implements shard.Admission.
func (h ownerHost) Usage() *store.Usage { return h.m.admission.usage.Load() }

// LiveLimit implements shard.Admission.
func (h ownerHost) LiveLimit() int64 { return h.m.admission.liveLimit(h.m.shards) }

// Blocked implements shard.Admission.
func (h ownerHost) Blocked(behavior string) bool { return h.m.paused(behavior) }

// WhyBlocked implements shard.Explainer.
func (h ownerHost) WhyBlocked(behavior string, ready bool) (explanation.Explanation, bool) {
	if known := h.m.settings.known.Load(); known != nil {
		if p, paused := known.Pause(behavior); paused {
			return explanation.Explanation{Why: task.WhyPaused, Since: p.Since, Text: p.String()}, true
		}
	}
	if !ready || h.m.heard.Load() {
		return explanation.Explanation{}, false
	}
	return h.m.whySettings(), true
}

// Ready implements shard.Explainer.
func (h ownerHost) Ready(behavior string, offered func() bool) explanation.Explanation {
	free := func() bool { return h.m.exec.Free(behavior) || offered() }
	e := explanation.OfReady(h.m.view.Load().Nodes, behavior, free)
	if stuck := h.m.exec.Stuck(); stuck > 0 && e.Why == task.WhyWaiting {
		e.Text += fmt.Sprintf("; %d slots of node %s are held by functions that did not return after their context had ended",
			stuck, h.m.cfg.Name)
	}
	return e
}

// Wants implements shard.Placement.
func (h ownerHost) Wants(shard int, target string) bool { return h.m.wantsToGive(shard, target) }

// BacklogChanged implements shard.Placement.
func (h ownerHost) BacklogChanged(blocked bool) {
	h.m.load.changed()
	if blocked {
		h.m.offers.Wake()
	}
}

// Archived implements shard.Archiver.
func (h ownerHost) Archived() { h.m.node.archived.Store(h.m.cfg.Now().UnixMilli()) }

// Problem implements shard.Archiver.
func (h ownerHost) Problem() string { return h.m.node.archive.Problem() }
