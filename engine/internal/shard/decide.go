package shard

import (
	"slices"

	"taskledger/engine/internal/command"
	"taskledger/projection"
)

// answered is the last batch of a lane that this owner has decided, recorded in the journal or not.
type answered struct {
	number  uint64
	answers []command.Answer
}

// memory remembers the batches that this owner has decided, so that a second copy of one has the same answer even
// if it caused no event.
type memory struct {
	seen   map[projection.SenderLane]answered
	before map[projection.SenderLane]answered // those of before seen was begun anew
}

// decideLane decides batches until the entry is full; the rest waits for the next one.
func (o *Owner) decideLane(d *command.Decider, lane uint8, batches []Delivery) {
	for i, b := range batches {
		if d.Full(b.Batch) {
			o.inbox.putBack(lane, batches[i:])
			return
		}
		if answers, done := o.decided(b.Batch); done {
			if answers == nil && b.Stored {
				answers = []command.Answer{} // nobody waits for them, but the message is removed with its answer
			}
			if answers != nil {
				o.pending.replies = append(o.pending.replies, pendingReply{b, answers})
			}
			continue
		}
		o.pending.replies = append(o.pending.replies, pendingReply{b, o.decideBatch(d, b.Batch)})
	}
}

// decided returns the answers of a batch that was decided before, by this owner or an earlier one. It returns nil
// when a later one of the lane was: the sender no longer waits.
func (o *Owner) decided(b *command.Batch) (answers []command.Answer, done bool) {
	lane := projection.SenderLane{Sender: b.Sender, Lane: b.Lane}
	if last, ok := o.lastSeen(lane); ok {
		if b.Number == last.number {
			return last.answers, true
		}
		return nil, b.Number < last.number
	}
	row := o.state.Decided(lane)
	if row == nil || b.Number > row.Number {
		return nil, false
	}
	if b.Number < row.Number {
		return nil, true
	}
	answers, err := command.DecodeAnswers(row.Answers)
	if err != nil {
		o.log.Error("recorded answers cannot be read", "sender", b.Sender, "number", b.Number, "err", err)
		return nil, true
	}
	return answers, true
}

// decideBatch decides every command of a batch.
func (o *Owner) decideBatch(d *command.Decider, b *command.Batch) []command.Answer {
	if c := b.Barrier(); c != nil {
		return o.decideBarrier(b, c)
	}
	lane := projection.SenderLane{Sender: b.Sender, Lane: b.Lane}
	// Nodes are few: only the senders of submits are refused.
	if b.Lane == command.LaneSubmit && o.state.Senders() >= projection.MaxSenders && o.state.Decided(lane) == nil {
		refusal := command.Answer{Code: command.AnswerOverload, Text: "too many senders", Number: 60_000}
		refused := slices.Repeat([]command.Answer{refusal}, len(b.Commands))
		o.tally.Refused(b.Commands, refused, o.state.Knows)
		return refused
	}
	answers := d.DecideBatch(b)
	o.tally.Refused(b.Commands, answers, o.state.Knows)
	o.remember(lane, b.Number, answers)
	return answers
}

func (o *Owner) lastSeen(lane projection.SenderLane) (answered, bool) {
	if last, ok := o.memory.seen[lane]; ok {
		return last, true
	}
	last, ok := o.memory.before[lane]
	return last, ok
}

// remember keeps what was answered, so that a second copy of a batch gets the same answer even if the batch caused
// no event.
func (o *Owner) remember(lane projection.SenderLane, number uint64, answers []command.Answer) {
	o.memory.seen[lane] = answered{number, answers}
}

// decideBarrier answers a barrier: with what is recorded of the batch before it, or by recording the number of the
// barrier, without any event.
func (o *Owner) decideBarrier(b *command.Batch, c *command.Barrier) []command.Answer {
	lane := projection.SenderLane{Sender: b.Sender, Lane: b.Lane}
	for _, decided := range o.entry.Entry.Origins { // in this entry
		if decided.Batch == 0 && decided.Sender == b.Sender && decided.Lane == b.Lane && decided.Number == c.Number {
			return []command.Answer{{Data: decided.Answers}}
		}
	}
	switch row := o.state.Decided(lane); {
	case row != nil && row.Number == c.Number:
		return []command.Answer{{Data: row.Answers}}
	case row == nil && o.state.Senders() >= projection.MaxSenders:
		return nil // later
	}
	answers := []command.Answer{{}}
	o.entry.AddOrigin(b.Origin())
	o.entry.SetAnswers(command.EncodeAnswers(answers))
	o.remember(lane, b.Number, answers)
	return answers
}
