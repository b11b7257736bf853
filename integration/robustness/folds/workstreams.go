package folds

import (
	"fmt"

	"taskledger/events"
)

// stream has what a work that streams keeps beside its run.
type stream struct {
	token string
	holds map[uint32]*kept // by number
	byKey map[string]uint32
	last  uint32 // the highest number of a hold so far
}

// kept is a hold.
type kept struct {
	key     string
	passed  bool
	changes int
	task    *hand // nil = it is yet to be created
}

// heldFor tells for which hold a task was made.
type heldFor struct {
	of     *job
	number uint32
	gone   bool   // the hold has ended, or its work is gone
	since  uint64 // the entry in which it was created
}

// has returns the stream of a work.
func (of *job) has() *stream {
	if of.stream == nil {
		of.stream = &stream{holds: map[uint32]*kept{}, byKey: map[string]uint32{}}
	}
	return of.stream
}

// streams says what keeps an attempt from telling of a stream; "" for nothing.
func (of *job) streams(attempt events.Ref) string {
	p := of.part()
	has, open := of.open[1]
	switch {
	case p == nil || p.plan.Form == events.FormBuckets:
		return "no stream is under way"
	case !open || has.attempt != attempt:
		return fmt.Sprintf("attempt %d tells of a stream whose bucket attempt %d has", attempt, has.attempt)
	}
	if w := of.workers[has.worker]; w == nil || w.attempt != attempt {
		return fmt.Sprintf("attempt %d tells of a stream, and does not run", attempt)
	}
	return ""
}

// moveToken folds how far a stream has come, or says what forbids it.
func (of *job) moveToken(b *events.TokenMoved) string {
	if problem := of.streams(b.Attempt); problem != "" {
		return "a token moves: " + problem
	}
	p, s := of.part(), of.has()
	if simulates := p.plan.Mode != events.ModeFull && !p.plan.MovesToken; b.Token != "" && b.Simulated != simulates {
		return fmt.Sprintf("a token moves in partition %q, and that it is simulated is %t", p.plan.ID, b.Simulated)
	}
	p.items.Done += b.Items.Done
	p.items.Failed += b.Items.Failed
	p.items.Skipped += b.Items.Skipped
	stands := &s.token
	if b.Simulated {
		stands = &p.simulated
	}
	if b.Token == "" || b.Token == *stands {
		return ""
	}
	*stands = b.Token
	for _, w := range of.workers {
		w.forgive()
	}
	return ""
}

// hold folds a change that is held, or says what forbids it.
func (of *job) hold(b *events.ChangeHeld) string {
	if problem := of.streams(b.Attempt); problem != "" {
		return "a change is held: " + problem
	}
	s := of.has()
	h := s.holds[b.Hold]
	switch {
	case h == nil && b.Hold <= s.last:
		return fmt.Sprintf("hold %d begins after hold %d", b.Hold, s.last)
	case h == nil && !b.Passed && s.byKey[b.Key] != 0:
		return fmt.Sprintf("hold %d begins for a key that hold %d has", b.Hold, s.byKey[b.Key])
	case h == nil:
		h = &kept{key: b.Key, passed: b.Passed}
		s.holds[b.Hold], s.last = h, b.Hold
		if !b.Passed {
			s.byKey[b.Key] = b.Hold
		}
	case h.key != b.Key || h.passed || b.Passed:
		return fmt.Sprintf("a change of key %q goes into hold %d of key %q, passed %t", b.Key, b.Hold, h.key, h.passed)
	}
	if h.changes++; h.changes > events.MaxHeldChanges || len(s.holds) > events.MaxHolds {
		return fmt.Sprintf("%d changes of hold %d, of %d holds", h.changes, b.Hold, len(s.holds))
	}
	return ""
}

// moveHold folds that changes of a hold are processed, or says what forbids it.
func (of *job) moveHold(b *events.HoldMoved) string {
	s := of.has()
	h := s.holds[b.Hold]
	switch {
	case h == nil:
		return fmt.Sprintf("hold %d moves, and is not there", b.Hold)
	case h.task == nil || h.task.attempt == 0:
		return fmt.Sprintf("hold %d moves, and its task does not run", b.Hold)
	case int(b.Done) > h.changes || b.Ended != (int(b.Done) == h.changes):
		return fmt.Sprintf("%d of %d changes of hold %d are processed, and that it ends is %t", b.Done, h.changes, b.Hold, b.Ended)
	}
	if h.changes -= int(b.Done); b.Ended {
		h.task.held.gone = true
		of.drop(b.Hold)
	}
	return ""
}

// drop forgets a hold.
func (of *job) drop(number uint32) {
	s := of.has()
	if h := s.holds[number]; h != nil && s.byKey[h.key] == number {
		delete(s.byKey, h.key)
	}
	delete(s.holds, number)
}

// mayReset says what keeps a work from being reset.
func (of *job) mayReset(b *events.WorkReset) string {
	switch {
	case len(of.open) > 0 || of.own.attempt != 0:
		return fmt.Sprintf("a reset of a work that runs, or has %d open buckets", len(of.open))
	case b.What != events.ResetToken && !of.planned:
		return "a reset of a work that was reset"
	case b.What == events.ResetToken && !of.own.suspended && !of.own.final:
		return "the token of a stream is set that may go on"
	}
	return ""
}

// setToken folds that an operator has set the token.
func (of *job) setToken(token string) {
	of.has().token = token
	for i := range of.parts {
		of.parts[i].simulated = ""
	}
}

// joinHold makes a task that was created for it the one of a hold, and reports whether it was.
func (s *Works) joinHold(t *hand, of *job, ev *events.Event) bool {
	number := events.HoldNumber(of.own.id, t.id)
	if of.stream == nil || of.stream.holds[number] == nil || of.stream.holds[number].task != nil {
		return false
	}
	of.stream.holds[number].task = t
	t.held = &heldFor{of: of, number: number, since: ev.Position.Ref.Entry()}
	s.touch(of)
	return true
}

// owesTask says which hold has no task by the end of an entry; "" for none.
func (of *job) owesTask() string {
	if of.stream == nil {
		return ""
	}
	for number, h := range of.stream.holds {
		if h.task == nil {
			return fmt.Sprintf("hold %d has begun, and no task is created for it in the same entry", number)
		}
	}
	return ""
}

// lasts reports whether the work has something that outlives its runs.
func (of *job) lasts() bool {
	return of.stream != nil && (of.stream.token != "" || len(of.stream.holds) > 0)
}

// tendsHeld reports whether an event of the task of a hold is one by which an owner tends it. Others may delete a task
// whose hold is gone, too.
func (t *hand) tendsHeld(ev *events.Event) bool {
	switch ev.Body.(type) {
	case *events.Suspended:
		return t.held.since == ev.Position.Ref.Entry()
	case *events.Deleted:
		return t.held.gone && ev.Asker == (events.Asker{})
	}
	return t.held.gone && Cancels(ev) && ev.Asker == (events.Asker{})
}
