package sender

import (
	"strconv"
	"strings"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/store"
)

// AnswerSubjects are the subjects on which answers come.
func (s *Sender) AnswerSubjects() string { return "node." + s.cfg.ID + ".*.*.*" }

// OnMessage takes answers that come over the bus, and the notice that nobody listens.
func (s *Sender) OnMessage(m store.Message) {
	if !m.NoResponders {
		if shard, ok := s.receive(m.Data); ok {
			s.detoured[shard].Store(false)
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
	if err1 != nil || err2 != nil || err3 != nil {
		return
	}
	if shard < 0 || shard >= len(s.lanes) || laneID < 0 || laneID >= int(command.LaneCount) {
		return
	}
	f := s.flightOf(shard, uint8(laneID), number)
	if f == nil {
		return
	}
	if f.Batch.Lane != command.LaneOffer {
		l := &s.lanes[shard][laneID]
		l.mu.Lock()
		f.Sent, f.Acknowledged = time.Now(), true
		l.mu.Unlock()
	}
	s.Detour(f)
}

// receive reads an encoded answer message: shard, lane, number, and the answers, nil for an acknowledgement.
func (s *Sender) receive(data []byte) (shard int, ok bool) {
	shard, laneID, number, answers, recorded, err := command.DecodeAnswerMessage(data)
	if err != nil || shard >= len(s.lanes) {
		s.cfg.Log.Warn("answer message cannot be read", "err", err)
		return 0, false
	}
	s.liveness.Sign()
	s.answered(shard, laneID, number, answers, recorded)
	return shard, true
}

// answered takes the answers to a batch; nil acknowledges it. recorded reports that they are in the journal. Answers
// to earlier batches come too late and are dropped.
func (s *Sender) answered(shard int, laneID uint8, number uint64, answers []command.Answer, recorded bool) {
	if laneID == command.LaneOffer {
		if s.offers != nil {
			s.offers.Answered(shard, number, answers)
		}
		return
	}
	l := &s.lanes[shard][laneID]
	l.mu.Lock()
	f := l.flight
	var now time.Time
	if f != nil && f.unconfirmed != nil { // the clock is read without the lock
		l.mu.Unlock()
		now = s.cfg.Now()
		l.mu.Lock()
	}
	if f == nil || f != l.flight || f.Batch.Number != number {
		l.mu.Unlock()
		return
	}
	rest := s.takeLocked(l, f, answers, recorded, now)
	l.mu.Unlock()
	if rest != nil {
		rest()
	}
}

// takeLocked takes the answers to the flight of a lane, at a time if that is a barrier. It returns what is left to
// do without the lock.
func (s *Sender) takeLocked(l *lane, f *Flight, answers []command.Answer, recorded bool, now time.Time) (rest func()) {
	corrupt := func() {
		s.cfg.Log.Error("answer does not fit its batch", "shard", f.Shard, "lane", f.Batch.Lane,
			"number", f.Batch.Number, "answers", len(answers), "calls", len(f.calls))
	}
	switch {
	case answers == nil:
		f.Acknowledged = true
		return nil
	case f.Batch.Lane == command.LaneSubmit && waitsForRoom(answers):
		behind, why := l.blockLocked(f, answers[0])
		return func() { behind.fail(why) }
	case f.Batch.Lane == command.LaneSubmit && len(answers) > 0 && answers[0].Code == command.AnswerUnserved:
		next := s.endLocked(l, f)
		return func() { next(); f.unserved(answers[0], recorded) }
	case f.unconfirmed == nil && len(answers) != len(f.calls):
		return corrupt
	}
	if barrier := l.barrierLocked(f, answers, recorded); barrier != nil {
		return func() { s.Dispatch(barrier) }
	}
	if f.neverDecided(answers) && f.forgotten(now) { // it was decided, perhaps, and its number forgotten
		next := s.endLocked(l, f)
		return func() { next(); f.fail(errUnknown) }
	}
	confirmed, ok := f.confirmed(answers)
	if !ok || len(confirmed) != len(f.calls) {
		return corrupt
	}
	if f.unconfirmed != nil && confirmed[0].Code == command.AnswerOverload {
		l.refuseForLocked(confirmed[0])
	}
	next := s.endLocked(l, f)
	return func() { next(); s.deliver(f, confirmed) }
}

// deliver gives the callers of a flight their answers. What did not fit into the answer is asked again.
func (s *Sender) deliver(f *Flight, answers []command.Answer) {
	shard, laneID := f.Shard, f.Batch.Lane
	for i, c := range f.calls {
		switch {
		case answers[i].Code == command.AnswerTryAgain:
			if err := s.Send(shard, laneID, c); err != nil && c.Waiter != nil {
				c.Waiter.Answered(command.Answer{}, err)
			}
			if s.Closed() && s.Withdraw(shard, laneID, c.Command) && c.Waiter != nil { // as in Ask
				c.Waiter.Answered(command.Answer{}, *s.closed.Load())
			}
		case c.Waiter != nil:
			c.Waiter.Answered(answers[i], nil)
		}
	}
}

// endLocked ends the flight of a lane. Without the lock its caller calls next, which sends what waits, or lets an
// owner in this process take it.
func (s *Sender) endLocked(l *lane, ended *Flight) (next func()) {
	l.flight = nil
	in := s.inboxHere(ended.Shard, ended.Batch.Lane)
	switch {
	case len(l.waiting) == 0:
		return func() {}
	case in == nil:
		return func() { s.leave(ended.Shard, ended.Batch.Lane) }
	}
	return in.Wake
}
