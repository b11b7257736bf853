package folds

import (
	"fmt"

	"taskledger/events"
)

// flow is what a stream has recorded over all runs of its work.
type flow struct {
	token string
	holds map[uint32]*hold  // by number
	byKey map[string]uint32 // of holds that no change passes
	last  uint32            // the highest number of a hold so far
}

// hold has changes that a task of its own processes.
type hold struct {
	key     string
	passed  bool // later changes of the key pass it
	changes int  // that are left
	bytes   int  // of their data
	sizes   []int
	task    *hand // nil = it is not created yet
}

// holdOf is which hold of a work a task is, or was.
type holdOf struct {
	work   *job
	number uint32
}

// isStream reports whether a partition is a stream.
func (p *part) isStream() bool { return p.plan.Form != events.FormBuckets }

// simulates reports whether a stream leaves its token where it is.
func (p *part) simulates() bool { return p.plan.Mode != events.ModeFull && !p.plan.MovesToken }

// streams says why an attempt has no stream; "" = it has one.
func (of *job) streams(attempt events.Ref) string {
	p := of.part()
	has, open := of.open[1]
	switch {
	case p == nil || !p.isStream():
		return "while no partition is under way that is a stream"
	case !open || has.attempt != attempt || of.own.attempt != attempt:
		return fmt.Sprintf("of attempt %d, which does not have the stream: attempt %d has", attempt, has.attempt)
	}
	return ""
}

// moveToken folds how far a stream has come, or says what forbids it.
func (of *job) moveToken(b *events.TokenMoved) string {
	if problem := of.streams(b.Attempt); problem != "" {
		return "a token moves " + problem
	}
	p := of.part()
	if b.Token != "" && b.Simulated != p.simulates() {
		return fmt.Sprintf("a token moves in partition %q, and that it is simulated is %t", p.plan.ID, b.Simulated)
	}
	p.items.Done += b.Items.Done
	p.items.Failed += b.Items.Failed
	p.items.Skipped += b.Items.Skipped
	was := &of.flow.token
	if b.Simulated {
		was = &p.simulated
	}
	if b.Token != "" && b.Token != *was {
		*was = b.Token
		for _, w := range of.workers {
			w.forgive()
		}
	}
	return ""
}

// hold folds a change that is held, or says what forbids it.
func (of *job) hold(b *events.ChangeHeld) string {
	if problem := of.streams(b.Attempt); problem != "" {
		return "a change is held " + problem
	}
	h := of.flow.holds[b.Hold]
	switch {
	case int(b.Partition) != of.current:
		return fmt.Sprintf("a change of partition %d is held, while partition %d is under way", b.Partition, of.current)
	case h == nil && b.Hold <= of.flow.last:
		return fmt.Sprintf("hold %d begins after hold %d", b.Hold, of.flow.last)
	case h == nil && !b.Passed && of.flow.byKey[b.Key] != 0:
		return fmt.Sprintf("hold %d begins for key %q, which hold %d has", b.Hold, b.Key, of.flow.byKey[b.Key])
	case h != nil && (h.key != b.Key || h.passed || b.Passed):
		return fmt.Sprintf("a change of key %q goes into hold %d of key %q", b.Key, b.Hold, h.key)
	}
	if h == nil {
		h = &hold{key: b.Key, passed: b.Passed}
		of.flow.begin(b.Hold, h)
	}
	h.sizes = append(h.sizes, len(b.Data))
	h.changes++
	h.bytes += len(b.Data)
	if h.changes > events.MaxHeldChanges || h.bytes > events.MaxHeldBytes {
		return fmt.Sprintf("hold %d has %d changes of %d bytes", b.Hold, h.changes, h.bytes)
	}
	return ""
}

func (f *flow) begin(number uint32, h *hold) {
	if f.holds == nil {
		f.holds, f.byKey = map[uint32]*hold{}, map[string]uint32{}
	}
	f.holds[number], f.last = h, number
	if !h.passed {
		f.byKey[h.key] = number
	}
}

// moveHold folds that changes of a hold are processed, or says what forbids it.
func (of *job) moveHold(s *Works, b *events.HoldMoved) string {
	h := of.flow.holds[b.Hold]
	switch {
	case h == nil || int(b.Done) > h.changes:
		return fmt.Sprintf("%d changes of hold %d are processed, which has fewer, or has gone", b.Done, b.Hold)
	case h.task == nil || h.task.attempt == 0:
		return fmt.Sprintf("changes of hold %d are processed without an attempt", b.Hold)
	case b.Ended != (int(b.Done) == h.changes):
		return fmt.Sprintf("hold %d, of %d changes, has %d processed, and that it ends is %t", b.Hold, h.changes, b.Done, b.Ended)
	}
	for _, size := range h.sizes[:b.Done] {
		h.bytes -= size
	}
	h.sizes = h.sizes[b.Done:]
	if h.changes -= int(b.Done); b.Ended {
		s.spend(of, b.Hold)
	}
	return ""
}

// drop forgets a hold.
func (f *flow) drop(number uint32) {
	h := f.holds[number]
	delete(f.holds, number)
	if f.byKey[h.key] == number {
		delete(f.byKey, h.key)
	}
}

// spend ends a hold, whose task is left over.
func (s *Works) spend(of *job, number uint32) {
	if t := of.flow.holds[number].task; t != nil {
		t.hold, t.spent = holdOf{}, true
	}
	of.flow.drop(number)
}

// lasts reports whether a work has a token or holds, which keep its task.
func (of *job) lasts() bool { return of.flow.token != "" || len(of.flow.holds) > 0 }

// setToken folds a token that somebody has set, or says what forbids it.
func (of *job) setToken(token string) string {
	if len(of.open) > 0 || of.own.attempt != 0 || !of.own.suspended && !of.own.final {
		return fmt.Sprintf("a token is set of a stream that has %d open buckets, or may run", len(of.open))
	}
	of.flow.token = token
	for i := range of.parts {
		of.parts[i].simulated = ""
	}
	return ""
}

// joinHold notes a task that was created for a hold, or says what forbids it.
func (s *Works) joinHold(t *hand, of *job, number uint32) string {
	h := of.flow.holds[number]
	if of.broken {
		return ""
	}
	if h == nil || h.task != nil {
		return fmt.Sprintf("a task is created for hold %d, which is not there, or has one", number)
	}
	h.task, t.hold = t, holdOf{of, number}
	return ""
}

// owesHold says which task a hold should have by the end of an entry; "" for none.
func (of *job) owesHold() string {
	for number, h := range of.flow.holds {
		if h.task == nil {
			return fmt.Sprintf("hold %d has begun, and its task is not created in the same entry", number)
		}
	}
	return ""
}

// tendsHold reports whether an event of the task of a hold is one that nobody asked for.
func (t *hand) tendsHold(ev *events.Event) bool {
	switch ev.Body.(type) {
	case *events.Suspended:
		return t.hold.work != nil && ev.Seq == 2 && t.created == ev.Position.Ref.Entry()
	case *events.Deleted:
		return t.spent && ev.Asker == (events.Asker{})
	}
	return t.spent && Cancels(ev) && ev.Asker == (events.Asker{})
}
