package works

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"taskledger/events"
	"taskledger/projection/extension"
)

// mayMoveToken returns an error for a move of a token that the state does not allow.
func (w *Work) mayMoveToken(b *events.TokenMoved) error {
	_, plan := w.Part()
	switch {
	case !w.IsStream(b.Attempt):
		return fmt.Errorf("a token of attempt %d, which does not have the bucket of a stream", b.Attempt)
	case b.Token != "" && b.Simulated != simulates(plan):
		return fmt.Errorf("a token in partition %q, simulated is %t", plan.ID, b.Simulated)
	}
	return nil
}

// mayHold returns an error for a change that no hold can take.
func (w *Work) mayHold(b *events.ChangeHeld) error {
	if !w.IsStream(b.Attempt) || int(b.Partition) != w.Current {
		return fmt.Errorf("a change of attempt %d, which does not have the bucket of a stream", b.Attempt)
	}
	s := w.Stream
	if s == nil {
		s = newStream()
	}
	h := s.holds[b.Hold]
	if h == nil {
		switch {
		case b.Hold <= s.last:
			return fmt.Errorf("hold %d begins after hold %d", b.Hold, s.last)
		case len(s.holds) >= events.MaxHolds && s.whole():
			return fmt.Errorf("%d holds, want %d at most", len(s.holds)+1, events.MaxHolds)
		case !b.Passed && s.byKey[b.Key] != 0 && s.holds[s.byKey[b.Key]].Life != 0:
			return fmt.Errorf("hold %d of a key that hold %d has", b.Hold, s.byKey[b.Key])
		}
		return nil
	}
	switch {
	case h.Key != b.Key || h.Passed || b.Passed:
		return fmt.Errorf("a change of another key for hold %d, or of one that changes pass", b.Hold)
	case len(h.Changes) >= events.MaxHeldChanges || h.data+int64(len(b.Data)) > events.MaxHeldBytes:
		return fmt.Errorf("%d changes of hold %d with %d bytes of data", len(h.Changes)+1, b.Hold, h.data+int64(len(b.Data)))
	}
	return nil
}

// whole reports whether the tasks of all holds were seen. Where the events of the stream's own task alone are folded,
// none is, and so no delete of a hold.
func (s *Stream) whole() bool {
	for _, h := range s.holds {
		if h.Life == 0 {
			return false
		}
	}
	return true
}

// mayMoveHold returns an error for a move of a hold that the state does not allow.
func (w *Work) mayMoveHold(b *events.HoldMoved) error {
	var h *Hold
	if w.Stream != nil {
		h = w.Stream.holds[b.Hold]
	}
	if h == nil || int(b.Done) > len(h.Changes) || b.Ended != (int(b.Done) == len(h.Changes)) {
		return fmt.Errorf("hold %d of %+v moves by %d changes, ended is %t", b.Hold, h, b.Done, b.Ended)
	}
	return nil
}

// mayReset returns an error for a reset that the state does not allow.
func (w *Work) mayReset(t extension.Task, b *events.WorkReset) error {
	switch {
	case len(w.open) > 0:
		return fmt.Errorf("a reset of a work that has %d open buckets", len(w.open))
	case b.What != events.ResetToken && !w.Planned:
		return errors.New("a reset of a work that was reset")
	case b.What == events.ResetToken && (!w.Streams() || !t.Suspended && !t.Final):
		return errors.New("a token is set of a work that is no stream, or may run")
	}
	return nil
}

// stream returns the stream of the work, which begins if there is none.
func (w *Work) stream() *Stream {
	if w.Stream == nil {
		w.Stream = newStream()
	}
	return w.Stream
}

// moveToken applies how far a stream has come.
func (s *Works) moveToken(of *Work, b *events.TokenMoved, now events.Millis) {
	p, _ := of.Part()
	stream := of.stream()
	p.Items.Done += b.Items.Done
	p.Items.Failed += b.Items.Failed
	p.Items.Skipped += b.Items.Skipped
	of.ErrorBytes = of.ErrorsTold(now) + TextBytes(b.Errors)
	s.nextStage(of)
	stream.count(b.Items.Done+b.Items.Failed+b.Items.Skipped, of.open[0].Since, now)
	if b.Items != (events.ItemCounts{}) || b.Oldest != stream.Oldest { // it gets on
		p.Moved = now
	}
	stream.Open, stream.Oldest, stream.ToldAt = b.Open, b.Oldest, now
	switch {
	case b.Token == "":
		if !of.leavesBehind(b) {
			return
		}
	case b.Simulated && p.Simulated != b.Token:
		p.Simulated = strings.Clone(b.Token)
	case !b.Simulated && stream.Token != b.Token:
		stream.Token, stream.MovedAt = strings.Clone(b.Token), now
	default:
		return
	}
	of.tries = nil
	for _, w := range of.workers { // the work gets on
		w.forgive()
	}
}

// leavesBehind reports whether a move of a pushed stream, which has no token, tells that each message is acknowledged
// that was there when the attempt began. What has ended attempts before is one of those. Open alone would not do:
// others are acknowledged before a message that ends each attempt.
func (w *Work) leavesBehind(b *events.TokenMoved) bool {
	_, plan := w.Part()
	return plan.Form == events.FormPushed && b.Items != (events.ItemCounts{}) &&
		(b.Open == 0 || b.Oldest > w.open[0].Since)
}

// setToken applies the token that an operator has set.
func (w *Work) setToken(token string, now events.Millis) {
	s := w.stream()
	s.Token, s.MovedAt = strings.Clone(token), now
	s.Open, s.Oldest, s.ToldAt = 0, 0, 0
	for i := range w.Parts {
		w.Parts[i].Simulated = ""
	}
}

// hold adds a change to its hold, or begins one.
func (w *Work) hold(b *events.ChangeHeld, now events.Millis) {
	s := w.stream()
	h := s.holds[b.Hold]
	if h == nil {
		h = &Hold{
			Number:    b.Hold,
			ID:        events.HoldID(w.ID, b.Hold),
			Partition: b.Partition,
			Key:       strings.Clone(b.Key),
			Passed:    b.Passed,
			Begun:     now,
		}
		s.holds[b.Hold], s.last = h, b.Hold
		s.bytes += HoldBytes(h.Key)
	}
	is := Held{
		At:      strings.Clone(b.At),
		Data:    slices.Clone(b.Data),
		Code:    strings.Clone(b.Code),
		Message: strings.Clone(b.Message),
		Attempt: b.Attempt,
	}
	h.Changes = append(h.Changes, is) // behind those that a snapshot may have
	h.data += int64(len(is.Data))
	s.bytes += is.size()
	s.name(h)
}

// name lets a hold be found by its key.
func (s *Stream) name(h *Hold) {
	if !h.Passed {
		s.byKey[h.Key] = h.Number
	} else if name := passedName(h.Key, h.Changes[0].At); name != "" {
		s.passed[name] = h.Number
	}
}

// moveHold takes away the changes of a hold that are processed, and a hold without any.
func (s *Works) moveHold(of *Work, b *events.HoldMoved) {
	h := of.Stream.holds[b.Hold]
	if b.Ended {
		s.endHold(of, h, false)
		return
	}
	for i := range h.Changes[:b.Done] {
		h.data -= int64(len(h.Changes[i].Data))
		of.Stream.bytes -= h.Changes[i].size()
	}
	h.Done += uint64(b.Done)
	h.Changes = slices.Clone(h.Changes[b.Done:])
	if b.Done > 0 { // it gets on: the policy's attempts are those of the change that is the first now
		h.forgive()
	}
}

// endHold forgets a hold, whose task is to be deleted. The work is gone, too, if it leaves an orphan.
func (s *Works) endHold(of *Work, h *Hold, orphan bool) {
	s.dropHold(of, h)
	if h.Life != 0 {
		s.spent[h.ID] = spent{life: h.Life, orphan: orphan}
		s.bytes += spentBytes
	}
}

// dropHold forgets a hold.
func (s *Works) dropHold(of *Work, h *Hold) {
	stream := of.Stream
	stream.bytes -= h.size()
	delete(stream.holds, h.Number)
	delete(s.byHold, h.ID)
	if stream.byKey[h.Key] == h.Number {
		delete(stream.byKey, h.Key)
	}
	if name := passedName(h.Key, h.Changes[0].At); stream.passed[name] == h.Number {
		delete(stream.passed, name)
	}
}

// joinHold notes a task that was created for a hold, and reports whether it was.
func (s *Works) joinHold(of *Work, t extension.Task) bool {
	number := events.HoldNumber(of.ID, t.ID)
	if number == 0 || of.Stream == nil {
		return false
	}
	h := of.Stream.holds[number]
	if h == nil || h.Life != 0 {
		return false
	}
	h.Life = t.Life
	s.byHold[h.ID] = holdOf{work: of, number: number}
	return true
}

// saw learns of an event of the task of a hold.
func (h *Hold) saw(t extension.Task, ev *events.Event) {
	h.Parked, h.Final = t.Suspended, t.Final
	h.follow(ev, false)
}

// leaveHold forgets the task of a hold, which is deleted or forgotten, and with it the hold.
func (s *Works) leaveHold(id events.TaskID) {
	if _, is := s.spent[id]; is {
		delete(s.spent, id)
		s.bytes -= spentBytes
		return
	}
	of, h := s.HoldOf(id)
	if h == nil {
		return
	}
	before := of.size()
	s.dropHold(of, h)
	s.bytes += of.size() - before
	s.shard.Reconsider(of.ID)
}
