package engine

import (
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// A batch that caused no event leaves no trace: a copy of it that reaches a later owner is decided afresh. So a sender that
// has sent a batch more than once does not believe such an answer at once. It settles the batch first: the next number of
// its lane is recorded in the journal, after which no copy counts any more.

// settleCommand asks what became of the batch before it in its lane, which shall not be decided any more. The answer's data
// is the answers of that batch if they are recorded; nil = it never was, and never will be.
type settleCommand struct{ Number uint64 }

func (*settleCommand) op() uint64              { return 16 }
func (*settleCommand) size() int               { return 16 }
func (c *settleCommand) encode(w *wire.Writer) { w.Array(1); w.Uint(c.Number) }
func (c *settleCommand) decode(r *wire.Reader) { r.ArrayOf(1); c.Number = r.Uint() }

// settlesLocked returns the flight that takes f's place when its answers are not to be believed yet; nil when they are.
func (l *lane) settlesLocked(f *flight, answers []answer, recorded bool) *flight {
	if recorded || f.batch.lane != laneSubmit || f.told != nil || f.copies.Load() < 2 {
		return nil
	}
	l.number++
	b := *f.batch
	b.number, b.commands = l.number, []command{&settleCommand{f.batch.number}}
	next := newFlight(f.shard, &b, f.calls)
	next.began, next.told = f.began, answers
	l.flight = next
	return next
}

// settled returns the answers to the batch that f settles; ok is false when they make no sense.
func (f *flight) settled(answers []answer) (of []answer, ok bool) {
	if f.told == nil {
		return answers, true
	}
	if len(answers) != 1 || answers[0].code != answerOK {
		return nil, false
	}
	if answers[0].data == nil {
		return f.told, true
	}
	of, err := decodeAnswers(answers[0].data)
	return of, err == nil
}

// settle answers the one command of a batch that settles another. What is not recorded yet is, without any event.
func (o *owner) settle(b *batch, c *settleCommand) []answer {
	lane := projection.SenderLane{Sender: b.sender, Lane: b.lane}
	if row := o.state.Decided(lane); row != nil && row.Number == c.Number {
		return []answer{{data: row.Answers}}
	}
	answers := []answer{{}}
	o.entry.AddOrigin(events.Origin{Sender: b.sender, Lane: b.lane, Number: b.number, Principal: b.principal})
	o.entry.SetAnswers(encodeAnswers(answers))
	o.remember(lane, b.number, answers)
	return answers
}

// settles returns the command of a batch that settles another.
func (b *batch) settles() *settleCommand {
	if len(b.commands) != 1 {
		return nil
	}
	c, _ := b.commands[0].(*settleCommand)
	return c
}
