package sender

import (
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// A batch that caused no event leaves no trace: a copy of it that reaches a later owner is decided afresh. So a
// sender does not believe such an answer to a batch of which more than one copy may be decided. It sends a barrier
// first: the next number of the lane is recorded in the journal, after which no copy of the batch counts any more.

// mailboxReaders bounds the owners that may decide one mailbox message: one that is about to answer it, and the next.
const mailboxReaders = 2

// barrierLocked returns the barrier that takes f's place when its answers are not to be believed yet; nil when they
// are.
func (l *lane) barrierLocked(f *Flight, answers []command.Answer, recorded bool) *Flight {
	if recorded || f.Batch.Lane != command.LaneSubmit || f.unconfirmed != nil || f.copies < 2 {
		return nil
	}
	l.number++
	b := *f.Batch
	b.Number, b.Commands, b.Asked = l.number, []command.Command{&command.Barrier{Number: f.Batch.Number}}, nil
	next := newFlight(f.Shard, &b, f.calls)
	next.Began, next.unconfirmed = f.Began, answers
	l.flight = next
	return next
}

// confirmed returns the answers to the batch that counts: where f is a barrier, those that it confirms or that the
// journal has. ok is false when they are corrupt.
func (f *Flight) confirmed(answers []command.Answer) (of []command.Answer, ok bool) {
	if f.unconfirmed == nil {
		return answers, true
	}
	if len(answers) != 1 || answers[0].Code != command.AnswerOK {
		return nil, false
	}
	if answers[0].Data == nil {
		return f.unconfirmed, true
	}
	of, err := command.DecodeAnswers(answers[0].Data)
	return of, err == nil
}

// neverDecided reports whether the answer to a barrier says that the journal does not have the batch before it.
func (f *Flight) neverDecided(answers []command.Answer) bool {
	return f.unconfirmed != nil && len(answers) == 1 && answers[0].Code == command.AnswerOK && answers[0].Data == nil
}

// forgotten reports whether the owner may know nothing any more of a batch that it has decided: it is so old, by
// either clock, that its process was asleep.
func (f *Flight) forgotten(wall time.Time) bool {
	return time.Since(f.Began) > GiveUp || wall.Sub(f.Batch.Made.Time()) > GiveUp
}

// unserved ends a flight whose shard is quarantined, where nothing can be recorded and so nothing confirmed. Nothing
// was accepted for certain if no other copy was ever on its way, or if all copies were mailbox messages and unread
// reports that the first one was read by nobody before and is removed with the answer.
func (f *Flight) unserved(a command.Answer, unread bool) {
	certain := f.unconfirmed == nil && (f.copies < 2 || unread && !f.direct && f.copies == mailboxReaders)
	if !certain {
		f.fail(fmt.Errorf("%w: %s", errUnknown, a.Text))
		return
	}
	for _, c := range f.calls {
		if c.Waiter != nil {
			c.Waiter.Answered(a, nil)
		}
	}
}

// waitsForRoom reports whether answers only say that the batch of submits waits for room in the store.
func waitsForRoom(answers []command.Answer) bool {
	return len(answers) == 1 && answers[0].Code == command.AnswerStoreFull
}

// blockLocked notes that a flight waits for room in the store, and takes out the calls behind it, which are to fail.
func (l *lane) blockLocked(f *Flight, full command.Answer) (behind *Flight, why error) {
	full.Code = command.AnswerOverload
	f.refusal, f.Acknowledged = &full, true
	behind = &Flight{calls: l.waiting}
	l.waiting = nil
	return behind, full.Err("")
}

// refuseForLocked lets new tasks be refused for as long as an answer says.
func (l *lane) refuseForLocked(a command.Answer) {
	l.refusal, l.refusing = a, time.Since(base)+events.Milliseconds(a.Number)
}
