package worker

import (
	"maps"
	"slices"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/slots"
)

const (
	// reofferEvery is the shortest time that an offer stands before it is replaced by one of another size.
	reofferEvery = 20 * time.Millisecond
	// idleAfter is the least time that an offer stands unanswered before other shards may claim its slots: an owner
	// with ready work would have answered by then.
	idleAfter = 50 * time.Millisecond
	// helpEvery is the interval at which a foreign shard with ready work is offered slots although shards served here
	// have work for all of them. helpOften replaces it where the owner runs no such work itself.
	helpEvery, helpOften = time.Second, 50 * time.Millisecond
)

// adjust makes, repeats and closes offers, and returns when it has to run again.
func (of *Offers) adjust(session *Session, now time.Time) time.Duration {
	if !session.host.MayStart() {
		return sender.BusTimeout
	}
	room := of.x.Room()
	v, here := session.cluster.View(), session.cluster.ReadyHere()
	of.lock()
	defer of.unlock()
	maps.DeleteFunc(of.unresponsive, func(owner string, _ time.Time) bool {
		_, present := v.Nodes[owner]
		return !present
	})
	for shard := range of.shards {
		of.forget(&of.shards[shard], v.Owners[shard].Node, now)
	}
	foreign := of.foreignShards(session, room, now)
	for i := range foreign {
		of.repeatLate(of.shards[foreign[i].shard].last(), now)
	}
	of.notifyNone()
	if of.closed {
		return sender.BusTimeout
	}
	hungry := slices.DeleteFunc(slices.Clone(foreign), func(f foreignShard) bool {
		return !of.takesMore(&of.shards[f.shard], &f, now)
	})
	own := room.Of(here)
	needed := own // slots that ready work could use
	for i := range hungry {
		needed += hungry[i].ready
		for behavior, n := range hungry[i].backlog {
			here[behavior] += n
		}
	}
	scarce := of.x.UsedUpByOffers(here)
	missing := needed - of.x.Unreserved() // or offered, and taken since by attempts that had lent them
	fair := of.x.Unused() / max(1, len(foreign))
	of.serve(session, hungry, own, fair, now)
	of.short.Store(missing > 0 || len(scarce) > 0 || room.Limited)
	switch {
	case missing > 0 || len(scarce) > 0:
		return of.reclaim(session, missing, scarce, now)
	case needed == 0:
		of.park(session, foreign, fair, now)
	}
	return sender.BusTimeout
}

// serve offers slots to foreign shards with ready work, those first that have waited longest. What is ready in the
// shards served here comes before them, but not always: a slot is reserved for a shard that was not offered one for a
// while, in sum no more than tasks have started here.
func (of *Offers) serve(session *Session, hungry []foreignShard, here, fair int, now time.Time) {
	slices.SortStableFunc(hungry, func(a, b foreignShard) int {
		return of.shards[a.shard].helped.Compare(of.shards[b.shard].helped)
	})
	started := of.x.StartedHere()
	of.abroad = max(of.abroad, started-min(started, uint64(of.x.cfg.Slots)))
	turns, promised := int(started-of.abroad), 0
	for i := range hungry {
		f := &hungry[i]
		s := &of.shards[f.shard]
		share := max(1, of.x.Unused()/(len(hungry)-i+min(here, 1)))
		free := of.x.Unreserved() - here
		due := here > 0 && free <= 0 && now.Sub(s.helped) > f.helpEvery()
		if due {
			free = min(share, turns-promised)
		}
		switch offered := of.offer(session, f.shard, min(max(f.ready, s.expects(fair)), free, share), f.backlog); {
		case offered > 0:
			s.helped = now
			if due {
				of.abroad += uint64(offered)
				turns -= offered
			}
		case due && free > 0:
			promised++
		}
	}
	of.x.Promise(promised)
}

// park offers free slots to the shards without ready work, for what may come: it then starts without another question.
func (of *Offers) park(session *Session, foreign []foreignShard, fair int, now time.Time) {
	for i := range foreign {
		s := &of.shards[foreign[i].shard]
		if last := s.last(); last == nil || last.slots == 0 && of.old(last, now) {
			of.offer(session, foreign[i].shard, s.expects(fair), nil)
		}
	}
}

// expects returns how many slots a shard may use before more can be offered: twice what it used of the last offer, a
// quarter of an even share at least, that share at most. It is zero where slots are fewer than shards.
func (s *shardOffers) expects(fair int) int { return max(fair/4, min(s.want, fair)) }

// takesMore reports whether a shard with ready work can do with another offer than the one that stands.
func (of *Offers) takesMore(s *shardOffers, f *foreignShard, now time.Time) bool {
	last := s.last()
	return f.ready > 0 &&
		(last == nil || of.old(last, now) && (last.slots == 0 || f.ready > 2*last.slots || !last.serves(f.backlog)))
}

// serves reports whether an offer brings any of the work that is ready.
func (o *openOffer) serves(backlog map[string]int) bool {
	return slices.ContainsFunc(o.detail, func(b command.OfferedBehavior) bool { return backlog[b.Behavior] > 0 })
}

// old reports whether an offer has stood long enough to be replaced.
func (of *Offers) old(o *openOffer, now time.Time) bool { return of.stood(o, now) > reofferEvery }

// reclaim gets slots back from shards that do without them: as many as are missing, as far as there are, and those
// of behaviors whose limit offers use up. Where no live owner could answer, the offer is given up. It returns when the
// next offer has stood for long enough.
func (of *Offers) reclaim(session *Session, missing int, scarce map[string]int, now time.Time) (again time.Duration) {
	v := session.cluster.View()
	again = sender.BusTimeout
	for shard := range of.shards {
		if s := &of.shards[shard]; s.last() != nil && s.last().slots == 0 {
			missing -= s.slots() // being closed
		}
	}
	for shard := range of.shards {
		s := &of.shards[shard]
		last := s.last()
		if last == nil || missing <= 0 && !last.serves(scarce) {
			continue
		}
		if _, alive := v.Nodes[v.Owners[shard].Node]; !alive {
			missing -= of.giveUp(s, func(*openOffer) bool { return true })
			continue
		}
		if last.slots == 0 {
			continue
		}
		if wait := of.enough(last, idleAfter) - of.stood(last, now); wait > 0 {
			again = min(again, wait)
			continue
		}
		s.want = 0
		missing -= s.slots()
		of.send(session, shard, 0, nil) // its slots are free when the owner has answered
	}
	return again
}

// offer reserves slots, as many as wanted and free, offers them and returns how many.
func (of *Offers) offer(session *Session, shard, want int, backlog map[string]int) int {
	slots, detail := of.x.Reserve(want, backlog)
	if slots > 0 {
		of.send(session, shard, slots, detail)
	}
	return slots
}

// foreignShard is a shard that another node serves.
type foreignShard struct {
	shard   int
	backlog map[string]int // ready tasks by behavior, as last reported
	ready   int            // of these, those that could start here
	self    bool           // its owner runs some of them itself
}

func (f *foreignShard) helpEvery() time.Duration {
	if f.self {
		return helpEvery
	}
	return helpOften
}

// foreignShards returns the shards that other live nodes serve, beginning with a different one every second.
func (of *Offers) foreignShards(session *Session, r slots.Room, now time.Time) []foreignShard {
	v := session.cluster.View()
	shards := len(of.shards)
	all := make([]foreignShard, 0, shards)
	for i := range shards {
		shard := (i + int(now.Unix())) % shards
		owner := v.Owners[shard]
		n, alive := v.Nodes[owner.Node]
		if !alive || owner.Node == session.ID {
			continue
		}
		backlog := session.cluster.ReadyAt(shard, owner.Node, of.unresponsive[owner.Node])
		f := foreignShard{shard: shard, backlog: backlog}
		f.ready = r.Of(f.backlog)
		f.self = n.Slots > 0 && slices.ContainsFunc(n.Behaviors, func(b string) bool { return f.backlog[b] > 0 })
		all = append(all, f)
	}
	return all
}
