package shard

import (
	"math"
	"slices"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/slots"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// starts finds slots for ready tasks: of this node, and those that other nodes have offered.
type starts struct {
	offers  []*parkedOffer
	blocked bool               // a ready task waits for a slot of this node
	firsts  []*projection.Task // of each behavior with a ready task, while one is picked
	heads   []slots.Head       // of the behaviors with a task that waits for a slot
	free    []bool             // of heads, while a task is picked: there is a slot
	waits   bool               // among the owners that wait for a slot
	barred  bool               // nothing could start in the last turn: the session may be over
	apart   events.Millis      // when a task starts at the latest that waits for a node it is kept for; 0 = none does
}

// apartFor bounds how long a ready task waits for the offer of a node where fewer of those run from which a front keeps
// it apart. A node offers its slots within some milliseconds after it has heard that a task is ready.
const apartFor events.Millis = 500

// parkedOffer is a standing offer that has not been answered.
type parkedOffer struct {
	Delivery
	*command.Offer
	assigned []*projection.Task // by the entry in the making
	bytes    int
	present  bool // the node was seen when the latest other offer came
}

// assign gives ready tasks to slots, best first: to this node's own, else to those that other nodes have offered. What
// is given becomes a Started in the entry in the making.
func (o *Owner) assign(d *command.Decider) {
	o.starts.blocked, o.starts.apart = false, 0
	for d.Err == nil && !d.EntryFull() {
		t, local, offer := o.nextStart()
		if t == nil {
			break
		}
		o.tally.Starts(t)
		if local {
			t = d.Start(t, o.ownership.Session.ID, 0, o.cfg.TTL)
			o.pending.starts = append(o.pending.starts, command.AssignmentOf(o.state, t))
			continue
		}
		t = d.Start(t, offer.Node, offer.Number, offer.lease())
		offer.give(t)
		if len(offer.assigned) == 1 {
			o.pending.filled = append(o.pending.filled, offer)
		}
	}
	if d.EntryFull() {
		o.inbox.wake.Notify() // what did not fit starts with the next entry
	}
	o.answerFilled(d)
	switch {
	case o.starts.blocked:
		o.cfg.Slots.Await(o.inbox, o.starts.heads)
	case o.starts.waits:
		o.cfg.Slots.Await(o.inbox, nil)
	}
	o.starts.waits = o.starts.blocked
}

// rankOf is by what a ready task is compared with those of other shards of this node.
func rankOf(t *projection.Task) slots.Head {
	return slots.Head{
		Behavior: t.Kind.Behavior,
		Priority: t.Priority,
		Due:      t.Due,
		Created:  t.CreatedAt,
	}
}

// nextStart picks the first ready task, over all behaviors, for which there is a slot, and takes the slot. A slot
// of this node goes to the task that comes first in all the shards that the node owns.
func (o *Owner) nextStart() (best *projection.Task, local bool, offer *parkedOffer) {
	o.starts.firsts, o.starts.heads = o.starts.firsts[:0], o.starts.heads[:0]
	for behavior := range o.state.Backlog() {
		if t := o.firstReady(behavior); t != nil && !o.cfg.Admission.Blocked(behavior) && !o.awaitsOffer(t) {
			o.starts.firsts, o.starts.heads = append(o.starts.firsts, t), append(o.starts.heads, rankOf(t))
		}
	}
	o.starts.free = o.cfg.Slots.FreeFor(o.inbox, o.starts.heads, o.starts.free[:0])
	waiting := o.starts.heads[:0] // the heads without a slot, in their own place
	for i, t := range o.starts.firsts {
		behavior, isLocal := t.Kind.Behavior, o.starts.free[i]
		if !isLocal && o.cfg.Slots.Runs(behavior) {
			o.starts.blocked, waiting = true, append(waiting, o.starts.heads[i])
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
	clear(o.starts.firsts)
	o.starts.heads = waiting
	if best != nil {
		local, offer = o.apart(best, local, offer)
	}
	if best != nil && local && !o.cfg.Slots.Take(o.inbox, rankOf(best)) { // another shard was faster
		o.starts.blocked = true
		local, offer = false, o.offerFor(best.Kind.Behavior)
		if offer == nil {
			return o.nextStart() // another behavior may have a slot
		}
	}
	return best, local, offer
}

// firstReady returns the first ready task of a behavior that may start; nil = none, or its run is over and the next
// turn ends it. While the store is almost full repetitions wait.
func (o *Owner) firstReady(behavior string) *projection.Task {
	t := o.state.Ready(behavior)
	if o.cfg.Admission.Refusal() != "" {
		t = o.state.ReadyBeside(behavior)
	}
	if t != nil && t.Deadline() != 0 && t.Deadline() <= o.now() {
		return nil
	}
	return t
}

// offerFor returns a parked offer with a slot for the behavior. What a node offered that is gone or drains is not
// used: the task would only be lost or released again. A node that the view does not show yet is used when it does.
func (o *Owner) offerFor(behavior string) *parkedOffer {
	nodes := o.cfg.Host.View().Nodes
	for _, p := range o.starts.offers {
		if p.takes(nodes, behavior) {
			return p
		}
	}
	return nil
}

// takes reports whether the offer has a slot for the behavior, of a node that is there.
func (p *parkedOffer) takes(nodes map[string]store.NodeInfo, behavior string) bool {
	n, present := nodes[p.Node]
	if !present || n.Draining || p.Slots <= 0 || p.bytes > command.MaxAnswerBytes/2 {
		return false
	}
	return slices.ContainsFunc(p.Behaviors, func(b command.OfferedBehavior) bool {
		return b.Behavior == behavior && b.Slots > 0
	})
}

// apart returns the slot for a task, of this node or of an offer, where fewest of those run from which a front keeps it
// apart: the slot that was found, or that of another offer.
func (o *Owner) apart(t *projection.Task, local bool, offer *parkedOffer) (bool, *parkedOffer) {
	if len(o.starts.offers) == 0 {
		return local, offer
	}
	byNode := o.beside(t)
	if byNode == nil {
		return local, offer
	}
	least := byNode[o.ownership.Session.ID]
	if !local {
		least = byNode[offer.Node]
	}
	nodes := o.cfg.Host.View().Nodes
	for _, p := range o.starts.offers {
		if n := byNode[p.Node]; n < least && p.takes(nodes, t.Kind.Behavior) {
			local, offer, least = false, p, n
		}
	}
	return local, offer
}

// awaitsOffer reports whether a task waits for the offer of a node where fewer of those run from which a front keeps it
// apart than on any node that has a slot for it.
func (o *Owner) awaitsOffer(t *projection.Task) bool {
	byNode := o.beside(t)
	until := t.Due + apartFor
	if byNode == nil || o.now() >= until {
		return false
	}
	nodes, behavior := o.cfg.Host.View().Nodes, t.Kind.Behavior
	least := byNode[o.ownership.Session.ID]
	if !o.cfg.Slots.Runs(behavior) {
		least = math.MaxInt
	}
	for _, p := range o.starts.offers {
		if p.takes(nodes, behavior) {
			least = min(least, byNode[p.Node])
		}
	}
	for id, n := range nodes {
		if byNode[id] < least && !n.Draining && n.Slots > byNode[id] && slices.Contains(n.Behaviors, behavior) {
			if o.starts.apart == 0 || until < o.starts.apart {
				o.starts.apart = until
			}
			return true
		}
	}
	return false
}

// give counts a task against the offer.
func (p *parkedOffer) give(t *projection.Task) {
	p.assigned = append(p.assigned, t)
	p.bytes += 256 + len(t.Params)
	p.Slots--
	for i := range p.Behaviors {
		if p.Behaviors[i].Behavior == t.Kind.Behavior {
			p.Behaviors[i].Slots--
		}
	}
}

// answerFilled records that the offers which got tasks are answered, and takes them off the parking place. With
// what, the Started events say.
func (o *Owner) answerFilled(d *command.Decider) {
	if len(o.pending.filled) == 0 {
		return
	}
	for _, p := range o.pending.filled {
		answers := []command.Answer{{}}
		o.entry.AddOrigin(p.Origin())
		o.entry.SetAnswers(command.EncodeAnswers(answers))
		o.remember(projection.SenderLane{Sender: p.Sender, Lane: p.Lane}, p.Number, answers)
	}
	kept := o.starts.offers[:0]
	for _, p := range o.starts.offers {
		if len(p.assigned) == 0 {
			kept = append(kept, p)
		}
	}
	clear(o.starts.offers[len(kept):])
	o.starts.offers = kept
}

// park keeps an offer until there is work for it. A later offer of the same sender closes it, and one without slots
// does nothing else; one that was answered already is answered again.
func (o *Owner) park(b Delivery) {
	c, ok := b.Commands[0].(*command.Offer)
	refusal, refused := command.RefuseInvalid(b.Commands[0])
	if !ok || len(b.Commands) != 1 {
		refusal, refused = command.Refused(command.AnswerInvalid, "an offer travels alone"), true
	}
	if refused {
		b.Reply(b.Batch, []command.Answer{refusal}, false)
		return
	}
	if answers, done := o.decided(b.Batch); done {
		if answers != nil {
			o.pending.replies = append(o.pending.replies, pendingReply{b, o.assignedBefore(c, b.Number)})
		} else {
			o.removeMessage(b)
		}
		return
	}
	at := slices.IndexFunc(o.starts.offers, func(p *parkedOffer) bool { return p.Sender == b.Sender })
	if at >= 0 {
		switch p := o.starts.offers[at]; {
		case p.Number > b.Number:
			o.removeMessage(b)
			return
		case p.Number < b.Number:
			o.pending.replies = append(o.pending.replies, pendingReply{p.Delivery, []command.Answer{{}}})
		}
		o.starts.offers = slices.Delete(o.starts.offers, at, at+1)
	}
	if c.Slots == 0 { // it only closes the one before, whose own answer may have no way back: its message is replaced
		answers := []command.Answer{{}}
		o.pending.replies = append(o.pending.replies, pendingReply{b, answers})
		o.remember(projection.SenderLane{Sender: b.Sender, Lane: b.Lane}, b.Number, answers)
		return
	}
	o.dropGone()
	offer := *c
	offer.Behaviors = append([]command.OfferedBehavior(nil), c.Behaviors...)
	o.starts.offers = append(o.starts.offers, &parkedOffer{Delivery: b, Offer: &offer})
	b.Reply(b.Batch, nil, false)
}

// removeMessage answers an offer that a later one has closed. Nobody waits for that, but a message is removed with
// its answer.
func (o *Owner) removeMessage(b Delivery) {
	if b.Stored {
		o.pending.replies = append(o.pending.replies, pendingReply{b, []command.Answer{}})
	}
}

// dropGone drops the offers of nodes that have gone since they were seen.
func (o *Owner) dropGone() {
	nodes := o.cfg.Host.View().Nodes
	o.starts.offers = slices.DeleteFunc(o.starts.offers, func(p *parkedOffer) bool {
		_, present := nodes[p.Node]
		gone := p.present && !present
		p.present = present
		return gone
	})
}

// closeOffers drops the offers of a sender up to a number: it counts them as answered, and would drop what they are
// given. Late copies are known by the number.
func (o *Owner) closeOffers(sender string, number uint64) {
	o.starts.offers = slices.DeleteFunc(o.starts.offers, func(p *parkedOffer) bool {
		return p.Sender == sender && p.Number <= number
	})
	lane := projection.SenderLane{Sender: sender, Lane: command.LaneOffer}
	if last, ok := o.lastSeen(lane); ok && last.number >= number {
		return
	}
	if row := o.state.Decided(lane); row == nil || row.Number < number {
		o.remember(lane, number, nil)
	}
}

// assignedBefore returns what an offer was answered with, as far as the attempts are still current. Those are left out
// whose parameters were replaced since: they started with others. If the first answer was lost the next reconcile
// releases them.
func (o *Owner) assignedBefore(c *command.Offer, number uint64) []command.Answer {
	var current []*projection.Task
	for t := range o.state.Running(c.Node) {
		if t.Offer == number && t.ParamsAt < t.Started {
			current = append(current, t)
		}
	}
	return command.EncodeAssignments(o.state, current)
}

func (p *parkedOffer) lease() time.Duration { return time.Duration(p.Lease) * time.Millisecond }
