package task

import (
	"encoding/json"

	"taskledger/events"
)

// Task describes a task at a time: as the owner of its shard answers, or as its history had it. Beside an error a
// Task means nothing. The caller owns it. JSON shows it as the HTTP API does, except for Details. Times are in UTC.
type Task struct {
	ID        events.TaskID   `json:"id"`
	Version   events.Position `json:"version"` // the position of its last event
	Behavior  string          `json:"behavior"`
	Status    Status          `json:"status"`
	Substatus Substatus       `json:"substatus"`
	Since     events.Millis   `json:"since"` // since when it has the substatus
	Priority  int64           `json:"priority"`
	Suspended bool            `json:"suspended,omitempty"`
	Cancelled bool            `json:"cancelled,omitempty"` // an attempt still runs, and nothing starts after it
	Forgotten bool            `json:"forgotten,omitempty"` // retention has removed it from memory
	Attempts
	Place
	Creator     string        `json:"creator,omitempty"` // the principal that created it; "" = none is known
	Tags        []string      `json:"tags,omitempty"`    // in order
	SuspendedAt events.Millis `json:"suspended_at,omitzero"`
	Times
	Progress *Progress       `json:"progress,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *events.Error   `json:"error,omitempty"`
	ErrorCut bool            `json:"error_cut,omitempty"` // Error is cut, as lists show it; Get returns the whole
	Interventions

	Details Details `json:"-"`
}

// Attempts numbers the attempts and runs of a task.
type Attempts struct {
	Attempt  uint32 `json:"attempt"`  // attempts that have started in this life
	Failures uint32 `json:"failures"` // attempts of this run that failed
	Lost     uint32 `json:"lost"`     // attempts of this run that were lost
	Runs     uint32 `json:"runs"`     // runs of this life that have ended; a failure that is retried ends none
}

// Place names the node that runs a task, and the last one that did.
type Place struct {
	Node     string `json:"node,omitempty"`      // name of the node that runs it
	Session  string `json:"session,omitempty"`   // session id of that node; "" = no attempt runs
	LastNode string `json:"last_node,omitempty"` // session id of the node that ran the last attempt
}

// Times holds the moments of a task that have come, and those before which it does not go on; 0 = none.
type Times struct {
	CreatedAt         events.Millis `json:"created_at"`
	ScheduleNotBefore events.Millis `json:"schedule_not_before,omitzero"` // when a task that is not RUNNING runs next
	StartedAt         events.Millis `json:"started_at,omitzero"`
	RecheckNotBefore  events.Millis `json:"recheck_not_before,omitzero"` // when a RUNNING task may show something new
	LostNotBefore     events.Millis `json:"lost_not_before,omitzero"`    // when a RUNNING task may run again
	EndedAt           events.Millis `json:"ended_at,omitzero"`
	Deadline          events.Millis `json:"deadline,omitzero"` // of a run that has not ended: it fails then
}

// Interventions names the principals that have cancelled or suspended a task, and their reasons.
type Interventions struct {
	AskedBy      string `json:"asked_by,omitempty"`      // principal that cancelled the task, or its next run
	Reason       string `json:"reason,omitempty"`        // the reason that AskedBy gave
	SuspendedBy  string `json:"suspended_by,omitempty"`  // principal that suspended the task
	SuspendedFor string `json:"suspended_for,omitempty"` // the reason that SuspendedBy gave
}

// Progress holds the progress that a function has reported.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"` // as the function gave it, without a check
	Note  string `json:"note,omitempty"`
}

// Details holds what is recorded of a task and is not part of its JSON.
type Details struct {
	// At holds the time for which Substatus was found: by the clock of the asking process, or by those of the owners
	// for a moment in history.
	At       events.Millis
	Life     events.Ref // the event that created the task; it names the life
	Seq      uint64     // number of the last event, counted from 1 in each life
	Started  events.Ref // the event that started the last attempt; its fencing token
	Policy   Policy
	RunEnded bool // Failures and Lost belong to a run that is over
	// ParamsElided and ResultElided say that the owner has left these to the journal. Get reads them there for as long
	// as they are kept; lists do without.
	ParamsElided, ResultElided bool
	// Cause is Snoozed, Lost or Released: the event that took a RUNNING task off its node; 0 for any other task.
	Cause events.Kind
	// WaitsSince says when that happened, or when the task was last rescheduled, or resumed after its time had come;
	// 0 = not since its status began.
	WaitsSince events.Millis
}

// Final reports that the task has ended and will not run again unless somebody asks. The status alone says how the
// last attempt ended, and not whether another one follows.
func (t *Task) Final() bool {
	return (t.Status == Success || t.Status == Failure) && t.ScheduleNotBefore == 0
}

// OnNode reports that an attempt runs.
func (t *Task) OnNode() bool { return t.Session != "" }

// Due returns when the next attempt may start; 0 = never as things stand, or an attempt runs.
func (t *Task) Due() events.Millis {
	if t.OnNode() {
		return 0
	}
	return max(t.ScheduleNotBefore, t.LostNotBefore)
}
