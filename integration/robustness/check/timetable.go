package check

import (
	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// timetable is all that the run tells of one schedule.
type timetable struct {
	name       string
	shard      *journal
	marks      []mark
	operations []*history.Operation
}

// mark is an event of a schedule, or of one of its runs, and the schedule after it.
type mark struct {
	ev    *events.Event // nil for one of a run
	entry uint64
	state ScheduleState
}

// after returns the schedule after so many marks.
func (s *timetable) after(marks int) ScheduleState {
	if marks == 0 {
		return ScheduleState{Left: -1}
	}
	return s.marks[marks-1].state
}

// unasked reports whether an event of a schedule follows from no command: decisions of ticks, the pause after a
// failure, the end of a backfill that is done, and definitions that stand in code.
func unasked(ev *events.Event) bool {
	if b := events.DefinitionIn(ev.Body); b != nil {
		return b.Code != ""
	}
	switch b := ev.Body.(type) {
	case *events.Ticked:
		return true
	case *events.SchedulePaused:
		return b.Failed != ""
	case *events.BackfillEnded:
		return ev.Caller == events.Caller{}
	}
	return false
}
