package history

import "taskledger/events"

// The verbs of schedules. Their Task is events.ScheduleRecord of the name, and Schedule tells the rest. ListSchedules
// concerns no single schedule, and its Task is "".
const (
	SetSchedule    Verb = "set-schedule"
	PauseSchedule  Verb = "pause-schedule"
	ResumeSchedule Verb = "resume-schedule"
	DeleteSchedule Verb = "delete-schedule"
	RunSchedule    Verb = "run-schedule" // a run by hand: Joined tells that it is shared, Request is its key
	Backfill       Verb = "backfill"
	EndBackfill    Verb = "end-backfill"
	GetSchedule    Verb = "get-schedule"   // linear
	ListSchedules  Verb = "list-schedules" // every page of it
)

// OfSchedule reports whether a verb is one of schedules.
func (v Verb) OfSchedule() bool {
	switch v {
	case SetSchedule, PauseSchedule, ResumeSchedule, DeleteSchedule, RunSchedule, Backfill, EndBackfill, GetSchedule,
		ListSchedules:
		return true
	}
	return false
}

// Asks reports whether a verb is a question about schedules, which changes nothing.
func (v Verb) Asks() bool { return v == GetSchedule || v == ListSchedules }

// ScheduleCall holds what a call about schedules asked for besides what its Operation says, and what it was told.
type ScheduleCall struct {
	Plan     *events.SchedulePlan `json:",omitempty"` // of SetSchedule: the definition, with every default filled in
	Params   string               `json:",omitempty"` // of SetSchedule: JSON; "" = none
	Seen     events.Ref           `json:",omitempty"` // the version that the caller has seen; 0 = any
	From, To events.Millis        // of Backfill
	Priority int64                `json:",omitempty"` // of RunSchedule: of the run; 0 = the schedule's

	// What follows was told with OK.
	Version events.Ref      `json:",omitempty"` // of SetSchedule: that of the definition in force
	Changed bool            `json:",omitempty"` // of SetSchedule: it was made or changed
	Run     string          `json:",omitempty"` // of RunSchedule: the task
	Ticks   int             `json:",omitempty"` // of Backfill: how many there are
	Shown   []ShownSchedule `json:",omitempty"` // of GetSchedule and ListSchedules
}

// ShownSchedule is a schedule as its owner showed it.
type ShownSchedule struct {
	Name       string
	Version    events.Ref
	Next, Last events.Millis // 0 = none
	Active     int
	Kept       int
	Paused     bool
	Left       int // ticks of a backfill that are not decided; -1 = none is under way
	Why        string
}
