package schedules

import (
	"taskledger/events"
)

// Step holds what is recorded next of a schedule: an event, and what belongs to it in its entry.
type Step struct {
	Body   events.Body      // nil = none
	Create events.TaskID    // the run that is created behind the event; "" = none
	Of     events.RunOrigin // what makes the run
	Cancel []events.TaskID  // runs that shall end, before anything else can be decided
}

// correctEvery bounds from below the time from one correction of the next tick to another.
const correctEvery events.Millis = 60 * 60 * 1000

// Correct returns the event that corrects the next tick of a schedule where the data of its time zone are others than
// those of whoever found it, nil for none. It never moves a tick that is due, and none back to a decided one.
func (a *Ahead) Correct(s *Schedule, now events.Millis) *events.Ticked {
	switch {
	case !a.corrects || a.of != s.Next || s.Next == 0 || s.due() <= now:
		return nil
	case a.corrected.at != 0 && a.corrected.at <= s.Decided:
		return nil
	case s.Decided < s.SetAt && a.corrected.at != 0 && a.corrected.at <= now: // the setter of the schedule saw it over
		return nil
	case s.CorrectedAt != 0 && now < s.CorrectedAt+correctEvery:
		return nil
	}
	return &events.Ticked{
		Decision:   events.TickCorrected,
		Next:       a.corrected.at,
		NextOffset: a.corrected.offset,
	}
}

// Decide returns what is recorded next of a schedule whose time has come, by an answer that fits it; false = nothing
// before something changes. taken reports whether there is a task of an id.
func (s *Schedules) Decide(of *Schedule, a *Ahead, now events.Millis, taken func(events.TaskID) bool) (Step, bool) {
	tick := of.Paused == nil && of.Next != 0 && !of.waits() && of.due() <= now
	switch {
	case tick && of.active > 0 && of.Plan.Overlap == events.OverlapReplace && !of.inPause() && !of.late(a, now):
		return Step{Cancel: s.toCancel(of)}, true
	case tick:
		return of.decideTick(a, now, taken), true
	case of.fills():
		return of.decideFill(a, taken), true
	}
	return Step{}, false
}

// toCancel returns the runs of a schedule that have not ended and that nobody has cancelled.
func (s *Schedules) toCancel(of *Schedule) (all []events.TaskID) {
	for id, r := range s.all(of) {
		if r.active && !r.cancelled {
			all = append(all, id)
		}
	}
	return all
}

// No decision that comes within leastGrace is late: a turn takes its time.
const leastGrace events.Millis = 1000

// late reports whether the newest undecided tick comes too late for a run.
func (s *Schedule) late(a *Ahead, now events.Millis) bool {
	return s.Plan.Misfire == events.MisfireSkip && now-s.Delay()-a.newest.at > max(s.Plan.Grace, leastGrace)
}

// decideTick decides the first undecided tick, with those after it of which the same is true.
func (s *Schedule) decideTick(a *Ahead, now events.Millis, taken func(events.TaskID) bool) Step {
	switch {
	case s.skips():
		return Step{Body: s.passOver(events.TickSkipped, events.TickOverlap, a)}
	case s.inPause():
		return Step{Body: s.passOver(events.TickMissed, events.TickPaused, a)}
	case s.active >= MaxActive:
		return Step{Body: s.passOver(events.TickSkipped, events.TickTooMany, a)}
	case s.Plan.Misfire == events.MisfireAll && !(s.Plan.Overlap == events.OverlapReplace && s.overlapped()):
		return s.decideAll(a, taken)
	case s.late(a, now):
		return Step{Body: s.passOver(events.TickMissed, events.TickLate, a)}
	case a.newest.at == s.Next:
		return s.create(a.next, taken)
	}
	b := &events.Ticked{
		Decision:   events.TickMissed,
		Cause:      events.TickOld,
		From:       s.Next,
		To:         a.before.at,
		ToOffset:   a.before.offset,
		Next:       a.newest.at,
		NextOffset: a.newest.offset,
	}
	if s.Plan.Overlap == events.OverlapReplace && s.overlapped() {
		b.Decision, b.Cause = events.TickSkipped, events.TickOverlap
	}
	a.of, a.second, a.first, a.older = a.newest.at, a.next, tick{}, tick{} // what is decided next
	return Step{Body: b}
}

// decideAll decides ticks of which the newest have their runs.
func (s *Schedule) decideAll(a *Ahead, taken func(events.TaskID) bool) Step {
	if a.older.at == 0 {
		return s.create(a.second, taken)
	}
	b := &events.Ticked{
		Decision:   events.TickMissed,
		Cause:      events.TickOld,
		From:       s.Next,
		To:         a.older.at,
		ToOffset:   a.older.offset,
		Next:       a.first.at,
		NextOffset: a.first.offset,
	}
	return Step{Body: b}
}

// passOver decides that ticks have no run: the first undecided one to the newest.
func (s *Schedule) passOver(decision events.TickDecision, cause events.TickCause, a *Ahead) events.Body {
	return &events.Ticked{
		Decision:   decision,
		Cause:      cause,
		From:       s.Next,
		To:         a.newest.at,
		ToOffset:   a.newest.offset,
		Next:       a.next.at,
		NextOffset: a.next.offset,
	}
}

// create decides that the next tick has its run, unless there is a task of that id.
func (s *Schedule) create(next tick, taken func(events.TaskID) bool) Step {
	id := s.tickRun(s.Next)
	b := &events.Ticked{
		Decision:   events.TickCreated,
		From:       s.Next,
		To:         s.Next,
		ToOffset:   s.NextOffset,
		Run:        id,
		Next:       next.at,
		NextOffset: next.offset,
	}
	if taken(id) {
		b.Decision, b.Cause, b.Run, id = events.TickSkipped, events.TickTaken, "", ""
	}
	return Step{Body: b, Create: id, Of: events.RunOfTick}
}

// decideFill decides the next tick of a backfill, or ends it.
func (s *Schedule) decideFill(a *Ahead, taken func(events.TaskID) bool) Step {
	f := s.Fill
	if f.Left == 0 || f.Next == 0 {
		return Step{Body: &events.BackfillEnded{}}
	}
	id := s.fillRun(f.Next, 0)
	if taken(id) {
		id = s.fillRun(f.Next, f.Since)
	}
	b := &events.Ticked{
		Decision: events.TickFilled,
		From:     f.Next,
		To:       f.Next,
		ToOffset: a.fill.offset,
		Run:      id,
		Next:     a.fillNext.at,
	}
	if taken(id) {
		b.Decision, b.Cause, b.Run, id = events.TickNotFilled, events.TickTaken, "", ""
	}
	return Step{Body: b, Create: id, Of: events.RunOfFill}
}

// Run returns the body of the event that creates a run, and says what made it where its id does not.
func (s *Schedule) Run(now events.Millis, of events.RunOrigin) *events.Created {
	if s.Plan.Names == events.NamesByOrigin {
		of = 0
	}
	return &events.Created{
		Behavior:  s.Plan.Behavior,
		Policy:    s.Plan.Policy,
		Priority:  s.Plan.Priority,
		NotBefore: now,
		Params:    s.Params,
		Ties:      events.Ties{Schedule: s.Name, By: s.SetBy, Run: of},
	}
}
