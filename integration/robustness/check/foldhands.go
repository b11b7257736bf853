package check

import (
	"fmt"

	"taskledger/events"
)

// hand is a task as far as works depend on it: each is followed, since any may become one that has a work.
type hand struct {
	id        events.TaskID
	attempt   events.Ref // the Started of the attempt that runs; 0 = none
	endedIn   uint64     // the entry in which the last attempt ended
	failed    bool       // it has failed by itself
	lost      bool       // its last attempt was lost
	suspended bool
	cancelled bool // and still on its node
	over      bool // its run has ended, and no attempt of another one has begun
	final     bool // nothing runs again unless somebody asks
	runs      uint32
	at        events.Millis // of its last event
	waits     events.Millis // until then the loss or the end of its last attempt keeps it from running
	of        *job          // which it is a worker of
	number    uint32        // as such
	held      *holdOf       // nil = it was made for no hold

	losses   int // since a bucket of its work ended, a change of its hold was processed, or its run ended
	failures int // likewise
}

// forgive counts losses and failures anew.
func (t *hand) forgive() { t.losses, t.failures = 0, 0 }

// hand returns the task of an event, as it was before it; nil = nothing is known of it.
func (s *WorkFold) hand(ev *events.Event) *hand {
	if s.tasks == nil {
		s.tasks = map[events.TaskID]*hand{}
	}
	if ev.Kind() == events.KindCreated {
		s.Forgotten(ev.Task)
		s.tasks[ev.Task] = &hand{id: ev.Task}
	}
	return s.tasks[ev.Task]
}

// follow moves a task on to an event.
func (s *WorkFold) follow(t *hand, ev *events.Event) {
	t.at = ev.At
	if kind := ev.Kind(); (kind == events.KindLost || kind == events.KindFailed) && s.GoesOn(t.id, ev.At) {
		t.forgive()
	}
	switch b := ev.Body.(type) {
	case *events.Started:
		t.attempt, t.waits, t.over, t.final = ev.Position.Ref, 0, false, false
	case *events.Succeeded:
		t.leave(ev)
		t.endRun()
		t.cancelled, t.final = false, b.Next == 0
	case *events.Failed:
		t.leave(ev)
		t.failed = b.Error.Code != events.CodeCancelled && b.Error.Code != events.CodeLost
		t.failures++
		if b.Run != 0 {
			t.endRun()
		}
		t.cancelled, t.final = false, b.Next == 0
	case *events.Snoozed:
		if t.leave(ev); t.losses > 0 {
			t.waits = b.Until
		}
	case *events.Released:
		t.leave(ev)
		t.waits = b.Until
	case *events.Lost:
		t.leave(ev)
		t.losses++
		t.waits = b.Until
	case *events.Rescheduled:
		if t.final = b.At == 0; t.final && !t.over {
			t.over = true
			t.runs++
		}
	case *events.CancelRequested:
		t.cancelled = true
	case *events.Suspended:
		t.suspended = true
	case *events.Resumed:
		t.suspended = false
	}
	if t.held != nil {
		if t.held.runs = t.attempt != 0; t.held.gone {
			t.forgive()
		}
	}
	if of := s.byID[t.id]; of != nil {
		of.follow(ev)
	}
}

// leave ends the attempt.
func (t *hand) leave(ev *events.Event) {
	if t.attempt != 0 {
		t.attempt, t.endedIn, t.failed, t.lost = 0, ev.Position.Ref.Entry(), false, ev.Kind() == events.KindLost
	}
}

func (t *hand) endRun() {
	t.over = true
	t.runs++
	t.forgive()
}

// follow notes what an event of the work's own task says of the task.
func (of *job) follow(ev *events.Event) {
	switch b := ev.Body.(type) {
	case *events.Snoozed: // for longer than an attempt waits for its parameters
		of.asleep = b.Until-ev.At > 30_000
	case *events.Started, *events.Rescheduled, *events.Failed:
		of.asleep = false
	case *events.Succeeded:
		of.finished = true
	}
}

// join makes a task that was created for it a worker of a work, or says what forbids it.
func (s *WorkFold) join(t *hand, b *events.Created, now events.Millis) string {
	of := s.byID[b.Ties.Parent]
	number := events.WorkerNumber(b.Ties.Parent, t.id)
	if of == nil || number < 2 {
		return ""
	}
	problem := ""
	if !of.broken {
		problem = of.mayJoin(number, now)
	}
	t.of, t.number = of, number
	of.workers[number] = t
	of.last = max(of.last, number)
	return problem
}

// mayJoin says what keeps a work from getting another worker at a time. Those that a loss keeps away for longer than a
// second have others in their place, up to as many as the plan has.
func (of *job) mayJoin(number uint32, now events.Millis) string {
	p := of.part()
	if p == nil {
		return "a worker is created while no partition is under way"
	}
	active, away := 1, 0
	count := func(w *hand) {
		active++
		if w.waits > now+1000 {
			away++
		}
	}
	for _, w := range of.workers {
		if w != of.own && !w.final || w == of.own && of.awake() {
			count(w)
		}
	}
	most := int(p.plan.Workers)
	switch {
	case of.bars() != "":
		return "a worker is created: " + of.bars()
	case number <= of.last:
		return fmt.Sprintf("worker %d is created after worker %d", number, of.last)
	case active-away > most:
		return fmt.Sprintf("a worker is created, which makes them %d of at most %d", active-away, most)
	case active > 2*most:
		return fmt.Sprintf("a worker is created, which makes them %d of at most %d with those that wait", active, 2*most)
	}
	return ""
}

// awake reports whether the work's own task is a worker, or becomes one when it starts.
func (of *job) awake() bool {
	for _, has := range of.open {
		if has.worker == 1 {
			return true
		}
	}
	return !of.asleep
}

// Holds reports whether a task is kept: a worker is as long as its work, the task of a hold as long as that, and a work
// that has a token or holds.
func (s *WorkFold) Holds(id events.TaskID) bool {
	t := s.tasks[id]
	if t == nil {
		return false
	}
	of := s.byID[id]
	return t.of != nil || t.held != nil && !t.held.gone || of != nil && of.stream.lasts()
}

// Lose leaves the work of a task, or of a worker, alone from now on: the events of the task are corrupt.
func (s *WorkFold) Lose(id events.TaskID) {
	if t := s.tasks[id]; t != nil && s.workOf(t) != nil {
		s.leave(s.workOf(t))
	}
}

// Counts returns how many attempts of a task were lost, and how many failed, since it got on; false = it works neither
// on buckets nor on the changes of a hold. It gets on when a bucket of its work, its run, or a change of its hold ends.
func (s *WorkFold) Counts(id events.TaskID) (losses, failures int, is bool) {
	t := s.tasks[id]
	if t == nil || s.workOf(t) == nil && t.held == nil {
		return 0, 0, false
	}
	return t.losses, t.failures, true
}

// HasHold reports whether a task was made for a hold.
func (s *WorkFold) HasHold(id events.TaskID) bool {
	t := s.tasks[id]
	return t != nil && t.held != nil
}

// WorkersOf returns the tasks that work on the buckets of a task, itself included, in no order.
func (s *WorkFold) WorkersOf(id events.TaskID) (all []events.TaskID) {
	of := s.byID[id]
	if of == nil {
		return nil
	}
	for _, w := range of.workers {
		all = append(all, w.id)
	}
	return all
}

// Tends reports whether an event that is not folded yet is one by which an owner tends a work: nobody asked for it.
func (s *WorkFold) Tends(ev *events.Event) bool {
	if b, created := ev.Body.(*events.Created); created {
		made := events.WorkerNumber(b.Ties.Parent, ev.Task) > 1 || events.HoldNumber(b.Ties.Parent, ev.Task) > 0
		return s.byID[b.Ties.Parent] != nil && made
	}
	t := s.tasks[ev.Task]
	if t != nil && t.held != nil {
		return t.held.tends(ev)
	}
	if t == nil || s.workOf(t) == nil {
		return false
	}
	of := s.workOf(t)
	if t == of.own {
		return isOfWork(ev.Kind()) || of.wakes(ev)
	}
	switch ev.Body.(type) {
	case *events.Suspended, *events.Resumed:
		return of.own.suspended == (ev.Kind() == events.KindSuspended)
	}
	return mayCancel(ev) && (of.own.over || of.own.cancelled)
}

// wakes reports whether an event wakes the work's own task, or ends its run for what became of the work.
func (of *job) wakes(ev *events.Event) bool {
	switch b := ev.Body.(type) {
	case *events.Failed:
		switch b.Error.Code {
		case events.CodeThreshold, events.CodeItems, events.CodeStopped, events.CodeLost, events.CodeRejected, events.CodeHolds:
			return true
		}
		return b.Error.Properties["bucket"] != "" // the last failure of those that had it
	case *events.Rescheduled:
		if b.At == 0 { // its retry is taken away: it is deleted
			return b.Reason == "deleted"
		}
		return of.asleep
	}
	return false
}
