package engine

import (
	"strconv"
	"strings"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/store"
)

// answered takes the answers to a batch; nil acknowledges it. recorded tells that they are in the journal. Answers to earlier
// batches come too late and are dropped.
func (r *router) answered(shard int, laneID uint8, number uint64, answers []command.Answer, recorded bool) {
	if laneID == command.LaneOffer {
		if r.offers != nil {
			r.offers.answered(shard, number, answers)
		}
		return
	}
	l := &r.lanes[shard][laneID]
	l.mu.Lock()
	f := l.flight
	var now time.Time
	if f != nil && f.told != nil { // it settles another
		l.mu.Unlock()
		now = r.now()
		l.mu.Lock()
	}
	if f == nil || f != l.flight || f.batch.Number != number {
		l.mu.Unlock()
		return
	}
	rest := r.takeLocked(l, f, answers, recorded, now)
	l.mu.Unlock()
	if rest != nil {
		rest()
	}
}

// takeLocked takes the answers to the flight of a lane, at a time if that settles another. It returns what is left to do
// without the lock.
func (r *router) takeLocked(l *lane, f *flight, answers []command.Answer, recorded bool, now time.Time) (rest func()) {
	misfit := func() {
		r.log.Error("answer does not fit its batch", "shard", f.shard, "lane", f.batch.Lane, "number", f.batch.Number,
			"answers", len(answers), "calls", len(f.calls))
	}
	switch {
	case answers == nil:
		f.patient = true
		return nil
	case f.batch.Lane == command.LaneSubmit && holdsUp(answers):
		behind, why := l.heldLocked(f, answers[0])
		return func() { behind.fail(why) }
	case f.batch.Lane == command.LaneSubmit && len(answers) > 0 && answers[0].Code == command.AnswerUnserved:
		next := r.afterLocked(l, f)
		return func() { next(); r.turnedDown(f, answers[0], recorded) }
	case f.told == nil && len(answers) != len(f.calls):
		return misfit
	}
	if next := l.settlesLocked(f, answers, recorded); next != nil {
		return func() { r.dispatch(next) }
	}
	never := f.told != nil && len(answers) == 1 && answers[0].Code == command.AnswerOK && answers[0].Data == nil
	if never && f.forgotten(now) { // it was decided, perhaps, and its number forgotten
		next := r.afterLocked(l, f)
		return func() { next(); f.fail(ErrUnknown) }
	}
	settled, ok := f.settled(answers)
	if !ok || len(settled) != len(f.calls) {
		return misfit
	}
	if f.told != nil && settled[0].Code == command.AnswerOverload {
		l.refusal, l.refusing = settled[0], time.Since(clockBase)+events.Milliseconds(settled[0].Number)
	}
	next := r.afterLocked(l, f)
	return func() { next(); r.tell(f, settled) }
}

// tell hands the callers of a flight their answers. What did not fit into the answer is asked again.
func (r *router) tell(f *flight, answers []command.Answer) {
	shard, laneID := f.shard, f.batch.Lane
	for i, c := range f.calls {
		switch {
		case answers[i].Code == command.AnswerTryAgain:
			if err := r.sendCall(shard, laneID, c); err != nil && c.caller != nil {
				c.caller.answered(command.Answer{}, err)
			}
			if r.closed.Load() && r.withdraw(shard, laneID, c.command) && c.caller != nil { // as in ask
				c.caller.answered(command.Answer{}, ErrClosed)
			}
		case c.caller != nil:
			c.caller.answered(answers[i], nil)
		}
	}
}

// afterLocked ends the flight of a lane. Without the lock its caller calls next, which sends what waits, or lets an owner in
// this process take it.
func (r *router) afterLocked(l *lane, ended *flight) (next func()) {
	l.flight = nil
	in := r.ownerHere(ended.shard, ended.batch.Lane)
	switch {
	case len(l.waiting) == 0:
		return func() {}
	case in == nil:
		return func() { r.leave(ended.shard, ended.batch.Lane) }
	}
	return in.wake.notify
}

// onMessage takes answers that come over the bus, and the news that nobody listens.
func (r *router) onMessage(m store.Message) {
	if !m.NoResponders {
		if shard, ok := r.receive(m.Data); ok {
			r.detoured[shard].Store(false)
		}
		return
	}
	parts := strings.Split(m.Subject, ".")
	if len(parts) != 5 {
		return
	}
	shard, err1 := strconv.Atoi(parts[2])
	laneID, err2 := strconv.Atoi(parts[3])
	number, err3 := strconv.ParseUint(parts[4], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || shard < 0 || shard >= len(r.lanes) || laneID < 0 || laneID >= int(command.LaneCount) {
		return
	}
	f := r.flightOf(shard, uint8(laneID), number)
	if f != nil && f.batch.Lane != command.LaneOffer {
		l := &r.lanes[shard][laneID]
		l.mu.Lock()
		f.sent, f.patient = time.Now(), true
		l.mu.Unlock()
	}
	r.detour(f)
}

// receive reads an encoded answer message: shard, lane, number, and the answers, nil for an acknowledgement.
func (r *router) receive(data []byte) (shard int, ok bool) {
	shard, laneID, number, answers, recorded, err := command.DecodeAnswerMessage(data)
	if err != nil || shard >= len(r.lanes) {
		r.log.Warn("answer message cannot be read", "err", err)
		return 0, false
	}
	r.lookout.Sign()
	r.answered(shard, laneID, number, answers, recorded)
	return shard, true
}
