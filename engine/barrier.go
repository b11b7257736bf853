package engine

import (
	"taskledger/engine/internal/command"
	"taskledger/projection"
)

// settle answers the one command of a batch that settles another: with what is recorded of that one, or by recording this
// one's number, without any event.
func (o *owner) settle(b *command.Batch, c *command.Barrier) []command.Answer {
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
