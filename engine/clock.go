package engine

import (
	"context"
	"slices"
	"time"
)

const (
	// clockEvery is the interval at which an idle node without a bus reports its clock by its key.
	clockEvery = 20 * time.Second
	// clockAge is the time for which the report of a node's clock counts.
	clockAge = time.Minute
	// clockLimit bounds the skew of a node's clock from its peers'. Beyond it the node must not own shards: entry
	// time drives retention.
	clockLimit = time.Minute
	// clockWarning is the skew from which on operators are warned.
	clockWarning = time.Second
	// hearClocksFor bounds the wait of a process whose first session has just begun for the clocks of the others,
	// before it takes shards.
	hearClocksFor = 2500 * time.Millisecond
)

// compared is the result of comparing the clock here with the other nodes' clocks.
type compared struct {
	ahead time.Duration // of the median of all clocks; with one other node, of that
	off   bool          // too far from most, or, once it was, still too far from those that are left
	all   bool          // every node that is present was heard
}

// maxDrift is the difference of two clocks, in milliseconds, beyond which they are equally wrong: a hundred years.
const maxDrift = 100 * 366 * 24 * 3600 * 1000

// compare compares the clocks. The clock of a node has gone on since the node was heard.
func (l *load) compare() (c compared) {
	here := l.m.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	var drifts []time.Duration
	c.all = true
	for id := range l.m.view.Load().Nodes { // peers may lack a node that has just joined
		if p := l.peers[id]; id != l.m.session.ID && (p == nil || p.clock == 0) {
			c.all = false
		}
	}
	for _, p := range l.peers {
		if heard := time.Since(p.at); p.present && p.clock != 0 && heard < clockAge {
			ahead := min(max(p.clock-here, -maxDrift), maxDrift)
			drifts = append(drifts, time.Duration(ahead)*time.Millisecond+heard)
		}
	}
	if len(drifts) == 0 {
		return c
	}
	if len(drifts) > 1 {
		drifts = append(drifts, 0) // its own
	}
	slices.Sort(drifts)
	middle, other := drifts[len(drifts)/2], drifts[(len(drifts)-1)/2]
	// An even number of clocks has two middles. The nearer one counts, since no majority says that this clock is
	// wrong; once a majority has said so, the farther one counts.
	found := l.m.node.clockWrong.Load() && l.othersOwn()
	if (other.Abs() < middle.Abs()) != found {
		middle = other
	}
	c.ahead = -middle
	c.off = (len(drifts) > 2 || found) && c.ahead.Abs() > clockLimit // two clocks alone do not show which one is wrong
	return c
}

// othersOwn reports whether another node may own shards. If none may, this node owns them although its clock was
// found wrong.
func (l *load) othersOwn() bool {
	for id, n := range l.m.view.Load().Nodes {
		if id != l.m.session.ID && n.Owner && !n.Draining {
			return true
		}
	}
	return false
}

// mayTake reports that nothing is known against the clock here. A process takes no shard before it has heard the
// clocks of all present nodes, or has been present for long enough.
func (l *load) mayTake() bool {
	if l.m.node.clockWrong.Load() {
		return false
	}
	c := l.compare()
	return !c.off && (c.all || time.Since(l.m.node.joined) >= hearClocksFor)
}

// checkClock lets other nodes ask for the shards served here while this node's clock is off, and keeps it from
// taking any. It warns operators of smaller differences, too.
func (l *load) checkClock(ctx context.Context) {
	m := l.m
	c := l.compare()
	l.mu.Lock()
	was := l.ahead
	switch {
	case c.ahead.Abs() < clockWarning/2 || was == 0 && c.ahead.Abs() <= clockWarning:
		l.ahead = 0
	case (c.ahead - was).Abs() > clockWarning:
		l.ahead = c.ahead.Round(time.Millisecond)
	}
	ahead := l.ahead
	l.mu.Unlock()
	wasWrong := m.node.clockWrong.Load()
	if wasWrong && !c.off && !c.all && time.Since(m.began) < clockAge { // of a new session that has not heard everybody
		c.off = true
	}
	m.node.clockWrong.Store(c.off)
	if ahead == was && c.off == wasWrong {
		return
	}
	if c.off != wasWrong {
		m.log.ErrorContext(ctx, "whether the clock is right has changed; a node with a wrong one owns no shards",
			"off", c.off, "ahead", ahead)
	} else {
		m.log.WarnContext(ctx, "clock differs from the other nodes'", "ahead", ahead)
	}
	if err := m.updateKey(ctx); err != nil { // tried again at the next check, perhaps in the next session
		m.node.clockWrong.Store(wasWrong)
		l.mu.Lock()
		l.ahead = was
		l.mu.Unlock()
	}
}
