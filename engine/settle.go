package engine

import (
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/projection"
)

// A batch that caused no event leaves no trace: a copy of it that reaches a later owner is decided afresh. So a sender does
// not believe such an answer to a batch of which more than one copy may be decided. It settles the batch first: the next
// number of its lane is recorded in the journal, after which no copy counts any more.

// letterReaders is how many owners may decide one letter: one that is about to answer it, and the next one.
const letterReaders = 2

// forgotten reports whether the owner may know nothing any more of a batch that it has decided: it is so old, by either clock, that
// its process was asleep.
func (f *flight) forgotten(wall time.Time) bool {
	return time.Since(f.began) > giveUp || wall.Sub(f.batch.Made.Time()) > giveUp
}

// settled returns the answers to the batch that f settles; ok is false when they make no sense.
func (f *flight) settled(answers []command.Answer) (of []command.Answer, ok bool) {
	if f.told == nil {
		return answers, true
	}
	if len(answers) != 1 || answers[0].Code != command.AnswerOK {
		return nil, false
	}
	if answers[0].Data == nil {
		return f.told, true
	}
	of, err := command.DecodeAnswers(answers[0].Data)
	return of, err == nil
}

// leaves counts the copies of a flight that go on their way: into the inbox of an owner here, or over a way at whose end
// owners may read them that do not know of each other. It reports false when the flight was answered meanwhile: nothing may
// follow an answer that was passed on.
func (r *router) leaves(f *flight, in *inbox, copies int) bool {
	if f.batch.Lane == command.LaneOffer {
		return true
	}
	l := &r.lanes[f.shard][f.batch.Lane]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flight != f {
		return false
	}
	if in == nil || f.in != in {
		f.in, f.copies = in, f.copies+copies
		f.direct = f.direct || copies < letterReaders
	}
	return true
}

// turnedDown ends a flight whose shard is quarantined, where nothing can be recorded and so nothing settled. It is certain that
// nothing was accepted when no other copy of it ever was on its way, or only letters were, of which one, the first, was read by
// nobody before and is removed with the answer: never says so.
func (r *router) turnedDown(f *flight, a command.Answer, never bool) {
	certain := f.told == nil && (f.copies < 2 || never && !f.direct && f.copies == letterReaders)
	for _, c := range f.calls {
		switch {
		case c.caller == nil:
		case certain:
			c.caller.answered(a, nil)
		default:
			c.caller.answered(command.Answer{}, fmt.Errorf("%w: %s", ErrUnknown, a.Text))
		}
	}
}

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
