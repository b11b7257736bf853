package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/store"
)

// askAgain is the pause before a shard is asked for again that its owner has kept; doubled each time, up to settleTime.
const askAgain = 250 * time.Millisecond

var errStays = errors.New("the owner keeps the shard")

// askFor asks the owner of a shard that belongs here to hand it over, having read its journal, so that nobody waits. The
// owner key alone tells whether it did; it waits for the answer until wait ends.
func (p *placement) askFor(ctx, wait context.Context, shard int) error {
	defer p.askNoMore(shard)
	have, err := p.m.loadShard(ctx, shard)
	if err != nil {
		p.spare(shard, reloadEvery, reloadEvery) // what is stored of it is damaged
		return fmt.Errorf("%w: %w", errStays, err)
	}
	wait, cancel := context.WithTimeout(wait, p.m.ttl)
	a, err := p.m.router.ask(wait, shard, command.LaneQuery, &command.HandOver{Node: p.m.session.ID})
	cancel()
	if err == nil {
		err = a.Err("")
	}
	v, unread := p.m.look(ctx)
	if unread != nil {
		return fmt.Errorf("%w: %w", errStays, unread)
	}
	key := v.Owners[shard]
	switch {
	case key.Node != p.m.session.ID && err != nil:
		p.spare(shard, askAgain, settleTime)
		return fmt.Errorf("%w: %w", errStays, err)
	case key.Node != p.m.session.ID:
		p.spare(shard, askAgain, settleTime)
		return errStays
	}
	p.askNoMore(shard)
	return p.serve(ctx, store.Ownership{Shard: shard, Revision: key.Revision, Session: p.m.session}, have)
}

// sparing is until when a shard is not asked for, and for how long.
type sparing struct {
	until time.Time
	pause time.Duration
}

// spare lets a shard stay where it is for a while, which gets longer up to most while it is spared again and again.
func (p *placement) spare(shard int, least, most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, now := p.spared[shard], time.Now()
	if now.Sub(s.until) > settleTime {
		s.pause = 0
	}
	s.pause = min(max(2*s.pause, least), most)
	s.until = now.Add(s.pause)
	p.spared[shard] = s
}

// askNoMore allows to ask for another shard, unless one is asked for already.
func (p *placement) askNoMore(shard int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given != nil && p.asked == shard {
		p.given()
		p.given = nil
	}
}

// wantsToGive reports whether a shard served here belongs to the node that asks for it.
func (m *member) wantsToGive(shard int, target string) bool {
	v := m.view.Load()
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	m.place.arrange(v)
	n, present := v.Nodes[target]
	return present && !n.Draining && n.Owner && len(m.place.order[shard]) > 0 && m.place.order[shard][0] == target
}
