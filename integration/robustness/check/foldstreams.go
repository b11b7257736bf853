package check

import (
	"fmt"

	"taskledger/events"
)

// foldedStream holds the token and the holds of a work. The zero value has none.
type foldedStream struct {
	token string
	holds map[uint32]*hold  // by number
	byKey map[string]uint32 // of holds that no change passes
	last  uint32            // the highest number of a hold so far
}

// hold has changes that a task of its own processes.
type hold struct {
	key     string
	passed  bool
	changes int
	task    *holdOf // nil = it is yet to be created
}

// holdOf tells for which hold a task was made.
type holdOf struct {
	work   events.TaskID
	number uint32
	runs   bool
	gone   bool   // the hold has ended, or its work is gone
	since  uint64 // the entry in which it was created
}

// hold folds a change that is held, or says what forbids it.
func (s *foldedStream) hold(b *events.ChangeHeld) string {
	h := s.holds[b.Hold]
	switch {
	case h == nil && b.Hold <= s.last:
		return fmt.Sprintf("hold %d begins after hold %d", b.Hold, s.last)
	case h == nil && !b.Passed && s.byKey[b.Key] != 0:
		return fmt.Sprintf("hold %d begins for a key that hold %d has", b.Hold, s.byKey[b.Key])
	case h == nil:
		h = &hold{key: b.Key, passed: b.Passed}
		s.begin(b.Hold, h)
	case h.key != b.Key || h.passed || b.Passed:
		return fmt.Sprintf("a change of key %q goes into hold %d of key %q, passed %t", b.Key, b.Hold, h.key, h.passed)
	}
	if h.changes++; h.changes > events.MaxHeldChanges || len(s.holds) > events.MaxHolds {
		return fmt.Sprintf("%d changes of hold %d, of %d holds", h.changes, b.Hold, len(s.holds))
	}
	return ""
}

func (s *foldedStream) begin(number uint32, h *hold) {
	if s.holds == nil {
		s.holds, s.byKey = map[uint32]*hold{}, map[string]uint32{}
	}
	s.holds[number], s.last = h, number
	if !h.passed {
		s.byKey[h.key] = number
	}
}

// move folds that changes of a hold are processed, or says what forbids it.
func (s *foldedStream) move(b *events.HoldMoved) string {
	h := s.holds[b.Hold]
	switch {
	case h == nil:
		return fmt.Sprintf("hold %d moves, and is not there", b.Hold)
	case h.task == nil || !h.task.runs:
		return fmt.Sprintf("hold %d moves, and its task does not run", b.Hold)
	case int(b.Done) > h.changes || b.Ended != (int(b.Done) == h.changes):
		return fmt.Sprintf("%d of %d changes of hold %d are processed, and that it ends is %t", b.Done, h.changes, b.Hold, b.Ended)
	}
	if h.changes -= int(b.Done); b.Ended {
		h.task.gone = true
		s.drop(b.Hold)
	}
	return ""
}

// drop forgets a hold.
func (s *foldedStream) drop(number uint32) {
	if h := s.holds[number]; h != nil && s.byKey[h.key] == number {
		delete(s.byKey, h.key)
	}
	delete(s.holds, number)
}

// leave leaves the tasks of all holds without one.
func (s *foldedStream) leave() {
	for _, h := range s.holds {
		if h.task != nil {
			h.task.gone = true
		}
	}
}

// join notes the task that was created for a hold; nil = there is no hold that wants one.
func (s *foldedStream) join(work events.TaskID, ev *events.Event) *holdOf {
	number := events.HoldNumber(work, ev.Task)
	h := s.holds[number]
	if h == nil || h.task != nil {
		return nil
	}
	h.task = &holdOf{
		work:   work,
		number: number,
		since:  ev.Position.Ref.Entry(),
	}
	return h.task
}

// owes says which hold has no task by the end of an entry; "" for none.
func (s *foldedStream) owes() string {
	for number, h := range s.holds {
		if h.task == nil {
			return fmt.Sprintf("hold %d has begun, and no task is created for it in the same entry", number)
		}
	}
	return ""
}

// lasts reports whether the work has something that outlives its runs.
func (s *foldedStream) lasts() bool { return s.token != "" || len(s.holds) > 0 }

// tends reports whether an event of the task is one by which an owner tends it. Others may delete a task whose hold is
// gone, too.
func (t *holdOf) tends(ev *events.Event) bool {
	switch ev.Body.(type) {
	case *events.Suspended:
		return t.since == ev.Position.Ref.Entry()
	case *events.Deleted:
		return t.gone && ev.Caller == (events.Caller{})
	}
	return t.gone && mayCancel(ev) && ev.Caller == (events.Caller{})
}
