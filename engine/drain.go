package engine

import (
	"context"
	"slices"
	"time"

	"taskledger/engine/internal/worker"
	"taskledger/store"
)

const (
	// pollEvery is the interval at which a node that waits for answers checks whether anybody is there to give them.
	pollEvery = 50 * time.Millisecond
	// releaseWithin bounds the wait of a drain for the owners of attempts that it releases although they run.
	releaseWithin = 500 * time.Millisecond
	// handOverWithin bounds the end of a drain after the time of its functions is over: the wait for those owners, and
	// the hand-over of the shards.
	handOverWithin = time.Second
)

// drain leaves in order: no new attempts, a grace period for the running ones, then the time that functions get whose
// context has ended, then shards handed over. What has not returned by then is Released all the same: the end of the
// session would make it Lost. Each step ends at a time counted from the beginning, so that whoever stops a node knows
// how long that takes: it returns when the last one ends. ctx is the session's; its end cuts everything short.
func (m *member) drain(ctx context.Context) (stopBy time.Time) {
	cut := time.Now().Add(max(m.cfg.Grace, 0))
	last := cut.Add(worker.Overdue)
	stopBy = last.Add(handOverWithin)
	ctx, cancel := context.WithDeadline(ctx, stopBy)
	defer cancel()
	m.draining.Store(true)
	m.node.extensions.drain()
	m.exec.Drain() // before what returns is released, and could begin here again
	cutting := time.AfterFunc(time.Until(cut), func() { m.exec.CancelAll(m.worker, worker.ErrDraining) })
	defer cutting.Stop()
	if err := m.announceDraining(ctx); err != nil {
		m.log.WarnContext(ctx, "others do not know that this node drains", "err", err)
	}
	m.waitForOwners(ctx, last, m.offers.Withdraw(m.worker))
	reconciled := m.offers.LastReconcile(m.worker)
	idle := m.exec.Drain()
	if !waitFor(ctx, idle, time.Until(cut)) {
		m.exec.CancelAll(m.worker, worker.ErrDraining) // also what came late
		if !waitFor(ctx, idle, time.Until(last)) {
			m.exec.ReleaseAll(m.worker)
			waitFor(ctx, idle, releaseWithin)
		}
	}
	// Attempts assigned to an offer whose answer was lost are released by now. The end of the session would lose them.
	m.waitForOwners(ctx, last.Add(releaseWithin), reconciled)
	m.place.giveAll(ctx)
	return stopBy
}

// announceDraining gives up after the TTL: a full store may take no write for long.
func (m *member) announceDraining(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.ttl)
	defer cancel()
	return m.updateKey(ctx)
}

// waitForOwners waits until answered is closed, for the TTL and until a time at most, and not in vain: the owners
// that have not answered may have left as well, and nobody be there to take their shards.
func (m *member) waitForOwners(ctx context.Context, until time.Time, answered <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, min(m.ttl, time.Until(until)))
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-answered:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		v := m.view.Load()
		if !slices.ContainsFunc(m.offers.Unanswered(), func(shard int) bool { return willServe(v, shard) }) {
			return
		}
	}
}

// willServe reports whether a shard has an owner, or is going to.
func willServe(v *store.Membership, shard int) bool {
	if _, present := v.Nodes[v.Owners[shard].Node]; present {
		return true
	}
	for _, n := range v.Nodes {
		if n.Owner && !n.Draining {
			return true
		}
	}
	return false
}

// waitFor reports whether done was closed within the time.
func waitFor(ctx context.Context, done <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// giveAll hands every shard to the node that comes next for it. Without one the shards are simply left.
func (p *placement) giveAll(ctx context.Context) {
	p.mu.Lock()
	p.leaving = true
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, p.m.ttl)
	defer cancel()
	v, err := p.m.refresh(ctx)
	if err != nil {
		p.m.log.WarnContext(ctx, "shards are left, not handed over", "err", err)
		return
	}
	ranks := rankNodes(v, p.m.shards)
	type handOver struct {
		shard int
		done  chan error
	}
	var all []handOver
	for _, o := range p.served() {
		shard := o.Ownership().Shard
		next := ranks.best(shard)
		if next == "" || next == p.m.session.ID || v.Outdated(v.Nodes[next].Reads.UpTo(0)) != "" {
			continue // nobody is there for it, or it writes what a node that is still present cannot read
		}
		g := handOver{shard, make(chan error, 1)}
		if o.HandOver(next, func(err error) { g.done <- err }) {
			all = append(all, g)
		}
	}
	for _, g := range all {
		select {
		case err := <-g.done:
			if err != nil {
				// Whoever comes next for the shard takes it as soon as the session is gone, which is at once.
				p.m.log.InfoContext(ctx, "shard is left, not handed over", "shard", g.shard, "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// becomeReady tells that the node serves the shards that fall to it. The caller holds p.mu, and calls it once.
func (p *placement) becomeReady(ctx context.Context) {
	close(p.m.node.ready)
	p.m.log.InfoContext(ctx, "the node is ready", "shards", len(p.owners))
}
