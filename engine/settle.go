package engine

import (
	"fmt"
	"time"

	"taskledger/events"
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
	return time.Since(f.began) > giveUp || wall.Sub(f.batch.made.Time()) > giveUp
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

// leaves counts the copies of a flight that go on their way: into the inbox of an owner here, or over a way at whose end
// owners may read them that do not know of each other. It reports false when the flight was answered meanwhile: nothing may
// follow an answer that was passed on.
func (r *router) leaves(f *flight, in *inbox, copies int) bool {
	if f.batch.lane == laneOffer {
		return true
	}
	l := &r.lanes[f.shard][f.batch.lane]
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
func (r *router) turnedDown(f *flight, a answer, never bool) {
	certain := f.told == nil && (f.copies < 2 || never && !f.direct && f.copies == letterReaders)
	for _, c := range f.calls {
		switch {
		case c.caller == nil:
		case certain:
			c.caller.answered(a, nil)
		default:
			c.caller.answered(answer{}, fmt.Errorf("%w: %s", ErrUnknown, a.text))
		}
	}
}

// settle answers the one command of a batch that settles another: with what is recorded of that one, or by recording this
// one's number, without any event.
func (o *owner) settle(b *batch, c *settleCommand) []answer {
	lane := projection.SenderLane{Sender: b.sender, Lane: b.lane}
	for _, decided := range o.entry.Entry.Origins { // in this entry
		if decided.Sender == b.sender && decided.Lane == b.lane && decided.Number == c.Number {
			return []answer{{data: decided.Answers}}
		}
	}
	switch row := o.state.Decided(lane); {
	case row != nil && row.Number == c.Number:
		return []answer{{data: row.Answers}}
	case row == nil && o.state.Senders() >= projection.MaxSenders:
		return nil // later
	}
	answers := []answer{{}}
	o.entry.AddOrigin(events.Origin{Sender: b.sender, Lane: b.lane, Number: b.number, Principal: b.principal})
	o.entry.SetAnswers(encodeAnswers(answers))
	o.remember(lane, b.number, answers)
	return answers
}
