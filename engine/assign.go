package engine

import (
	"slices"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/slots"
	"taskledger/projection"
)

// assign gives ready tasks to slots, best first: to this node's own, else to those that other nodes have offered. What
// is given becomes a Started in the entry in the making.
func (o *owner) assign(d *command.Decider) {
	o.blocked = false
	for d.Err == nil && !d.EntryFull() {
		t, local, offer := o.nextStart()
		if t == nil {
			break
		}
		o.tally.Starts(t)
		if local {
			t = d.Start(t, o.ownership.Session.ID, 0, o.m.ttl)
			o.turnOf.starts = append(o.turnOf.starts, command.AssignmentOf(t))
			continue
		}
		t = d.Start(t, offer.Node, offer.Number, offer.lease())
		offer.give(t)
		if len(offer.given) == 1 {
			o.turnOf.given = append(o.turnOf.given, offer)
		}
	}
	if d.EntryFull() {
		o.inbox.wake.Notify() // what did not fit starts with the next entry
	}
	o.answerGiven(d)
	switch {
	case o.blocked:
		o.m.exec.Await(o.inbox, o.heads)
	case o.waits:
		o.m.exec.Leave(o.inbox)
	}
	o.waits = o.blocked
}

// rankOf is by what a ready task is compared with those of other shards of this node.
func rankOf(t *projection.Task) slots.Head {
	return slots.Head{Behavior: t.Kind.Behavior, Priority: t.Priority, Due: t.Due, Created: t.CreatedAt}
}

// nextStart picks the first ready task, over all behaviors, for which there is a slot, and takes the slot. A slot of this node goes to the task
// that comes first in all the shards that the node owns.
func (o *owner) nextStart() (best *projection.Task, local bool, offer *parkedOffer) {
	o.firsts, o.heads = o.firsts[:0], o.heads[:0]
	for behavior := range o.state.Backlog() {
		if t := o.firstReady(behavior); t != nil && !o.m.paused(behavior) {
			o.firsts, o.heads = append(o.firsts, t), append(o.heads, rankOf(t))
		}
	}
	o.free = o.m.exec.FreeFor(o.inbox, o.heads, o.free[:0])
	waiting := o.heads[:0] // the heads without a slot, in their own place
	for i, t := range o.firsts {
		behavior, isLocal := t.Kind.Behavior, o.free[i]
		if !isLocal && o.m.exec.Runs(behavior) {
			o.blocked, waiting = true, append(waiting, o.heads[i])
		}
		if best != nil && !projection.Before(t, best) {
			continue
		}
		var from *parkedOffer
		if !isLocal {
			if from = o.offerFor(behavior); from == nil {
				continue
			}
		}
		best, local, offer = t, isLocal, from
	}
	clear(o.firsts)
	o.heads = waiting
	if best != nil && local && !o.m.exec.Take(o.inbox, rankOf(best)) { // another shard was faster
		o.blocked = true
		local, offer = false, o.offerFor(best.Kind.Behavior)
		if offer == nil {
			return o.nextStart() // another behavior may have a slot
		}
	}
	return best, local, offer
}

// firstReady returns the first ready task of a behavior that may start. While the store is almost full repetitions
// wait.
func (o *owner) firstReady(behavior string) *projection.Task {
	if *o.m.brake.Load() != "" {
		return o.state.ReadyBeside(behavior)
	}
	return o.state.Ready(behavior)
}

// offerFor returns a parked offer with a slot for the behavior. What a node offered that is gone or drains is not used:
// the task would only be lost or released again. A node that the view does not show yet is used when it does.
func (o *owner) offerFor(behavior string) *parkedOffer {
	nodes := o.m.view.Load().Nodes
	for _, p := range o.offers {
		n, present := nodes[p.Node]
		if !present || n.Draining || p.Slots <= 0 || p.bytes > command.MaxAnswerBytes/2 {
			continue
		}
		for i := range p.Behaviors {
			if p.Behaviors[i].Behavior == behavior && p.Behaviors[i].Slots > 0 {
				return p
			}
		}
	}
	return nil
}

// give counts a task against the offer.
func (p *parkedOffer) give(t *projection.Task) {
	p.given = append(p.given, t)
	p.bytes += 256 + len(t.Params)
	p.Slots--
	for i := range p.Behaviors {
		if p.Behaviors[i].Behavior == t.Kind.Behavior {
			p.Behaviors[i].Slots--
		}
	}
}

// answerGiven records that the offers which got tasks are answered, and takes them off the parking place. With what, the
// Started events say.
func (o *owner) answerGiven(d *command.Decider) {
	if len(o.turnOf.given) == 0 {
		return
	}
	for _, p := range o.turnOf.given {
		answers := []command.Answer{{}}
		o.entry.AddOrigin(p.Origin())
		o.entry.SetAnswers(command.EncodeAnswers(answers))
		o.remember(projection.SenderLane{Sender: p.Sender, Lane: p.Lane}, p.Number, answers)
	}
	kept := o.offers[:0]
	for _, p := range o.offers {
		if len(p.given) == 0 {
			kept = append(kept, p)
		}
	}
	clear(o.offers[len(kept):])
	o.offers = kept
}

// park keeps an offer until there is work for it. A later offer of the same sender closes it, and one without slots does
// nothing else; one that was answered already is answered again.
func (o *owner) park(b delivery) {
	c, ok := b.Commands[0].(*command.Offer)
	refusal, refused := command.Misfit(b.Commands[0])
	if !ok || len(b.Commands) != 1 {
		refusal, refused = command.Refused(command.AnswerInvalid, "an offer travels alone"), true
	}
	if refused {
		b.reply(b.Batch, []command.Answer{refusal}, false)
		return
	}
	if answers, done := o.decided(b.Batch); done {
		if answers != nil {
			o.turnOf.replies = append(o.turnOf.replies, pendingReply{b, o.givenBefore(c, b.Number)})
		} else {
			o.removeLetter(b)
		}
		return
	}
	at := slices.IndexFunc(o.offers, func(p *parkedOffer) bool { return p.Sender == b.Sender })
	if at >= 0 {
		switch p := o.offers[at]; {
		case p.Number > b.Number:
			o.removeLetter(b)
			return
		case p.Number < b.Number:
			o.turnOf.replies = append(o.turnOf.replies, pendingReply{p.delivery, []command.Answer{{}}})
		}
		o.offers = slices.Delete(o.offers, at, at+1)
	}
	if c.Slots == 0 { // it only closes the one before, whose own answer may have no way back: its letter is replaced
		answers := []command.Answer{{}}
		o.turnOf.replies = append(o.turnOf.replies, pendingReply{b, answers})
		o.remember(projection.SenderLane{Sender: b.Sender, Lane: b.Lane}, b.Number, answers)
		return
	}
	o.dropGone()
	offer := *c
	offer.Behaviors = append([]command.OfferedBehavior(nil), c.Behaviors...)
	o.offers = append(o.offers, &parkedOffer{delivery: b, Offer: &offer})
	b.reply(b.Batch, nil, false)
}

// removeLetter answers an offer that a later one has closed. Nobody waits for that, but a letter is removed with its answer.
func (o *owner) removeLetter(b delivery) {
	if b.letter {
		o.turnOf.replies = append(o.turnOf.replies, pendingReply{b, []command.Answer{}})
	}
}

// dropGone drops the offers of nodes that have gone since they were seen.
func (o *owner) dropGone() {
	nodes := o.m.view.Load().Nodes
	o.offers = slices.DeleteFunc(o.offers, func(p *parkedOffer) bool {
		_, present := nodes[p.Node]
		gone := p.present && !present
		p.present = present
		return gone
	})
}

// closeOffers drops the offers of a sender up to a number: it counts them as answered, and would drop what they are given.
// Late copies are known by the number.
func (o *owner) closeOffers(sender string, number uint64) {
	o.offers = slices.DeleteFunc(o.offers, func(p *parkedOffer) bool { return p.Sender == sender && p.Number <= number })
	lane := projection.SenderLane{Sender: sender, Lane: command.LaneOffer}
	if last, ok := o.lastSeen(lane); ok && last.number >= number {
		return
	}
	if row := o.state.Decided(lane); row == nil || row.Number < number {
		o.remember(lane, number, nil)
	}
}

// givenBefore is what an offer was answered with, as far as the attempts are still current. Those are left out whose parameters
// were replaced since: they started with others. If the first answer was lost the next roll call releases them.
func (o *owner) givenBefore(c *command.Offer, number uint64) []command.Answer {
	var current []*projection.Task
	for t := range o.state.Running(c.Node) {
		if t.Offer == number && t.ParamsAt < t.Started {
			current = append(current, t)
		}
	}
	return command.EncodeAssignments(current)
}

func (p *parkedOffer) lease() time.Duration { return time.Duration(p.Lease) * time.Millisecond }
