// Package view gives the answers of a cluster their JSON, the same wherever it is shown. Times are in UTC.
package view

import (
	"encoding/json"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/name"
	"taskledger/store"
	"taskledger/task"
)

// Task is a task as JSON shows it.
type Task struct {
	ID        events.TaskID   `json:"id"`
	Version   events.Position `json:"version"` // the position of its last event
	Behavior  string          `json:"behavior"`
	Status    task.Status     `json:"status"`
	Substatus task.Substatus  `json:"substatus"`
	Since     events.Millis   `json:"since"` // since when it has the substatus
	Priority  int64           `json:"priority"`
	Suspended bool            `json:"suspended,omitempty"`
	Cancelled bool            `json:"cancelled,omitempty"`
	Forgotten bool            `json:"forgotten,omitempty"`
	Counts
	Place
	Creator     string        `json:"creator,omitempty"`
	SuspendedAt events.Millis `json:"suspended_at,omitzero"`
	Times
	Progress *Progress       `json:"progress,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *events.Error   `json:"error,omitempty"`
	ErrorCut bool            `json:"error_cut,omitempty"` // error is cut; GET of the task shows the whole
	Requests
}

// Counts numbers the attempts and runs of a task.
type Counts struct {
	Attempt  uint32 `json:"attempt"`
	Failures uint32 `json:"failures"`
	Lost     uint32 `json:"lost"`
	Runs     uint32 `json:"runs"`
}

// Place names the node that runs a task, and the last one that did.
type Place struct {
	Node     string    `json:"node,omitempty"`
	Session  string    `json:"session,omitempty"`  // of that node
	LastNode name.Name `json:"last_node,omitzero"` // its session
}

// Times holds the moments of a task that have come, and those before which it does not go on.
type Times struct {
	CreatedAt         events.Millis `json:"created_at"`
	ScheduleNotBefore events.Millis `json:"schedule_not_before,omitzero"`
	StartedAt         events.Millis `json:"started_at,omitzero"`
	RecheckNotBefore  events.Millis `json:"recheck_not_before,omitzero"`
	LostNotBefore     events.Millis `json:"lost_not_before,omitzero"`
	EndedAt           events.Millis `json:"ended_at,omitzero"`
}

// Requests names the principals that have cancelled or suspended a task, and their reasons.
type Requests struct {
	AskedBy      string `json:"asked_by,omitempty"` // has cancelled the task, or has taken its next run away
	Reason       string `json:"reason,omitempty"`   // of asked_by
	SuspendedBy  string `json:"suspended_by,omitempty"`
	SuspendedFor string `json:"suspended_for,omitempty"` // the reason of suspended_by
}

// Progress holds the progress that a function has reported.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Note  string `json:"note,omitempty"`
}

// OfTask shows a task as it is at a time, with its version.
func OfTask(t projection.Task, version events.Position, now events.Millis) Task {
	v := Task{
		ID:        t.ID,
		Version:   version,
		Status:    t.Status,
		Priority:  t.Priority,
		Suspended: t.Suspended,
		Cancelled: t.Cancelled,
		Forgotten: t.Forgotten,
		Counts: Counts{
			Attempt:  t.Attempt,
			Failures: t.Failures,
			Lost:     t.Lost,
			Runs:     t.Runs,
		},
		Place: Place{
			Node:     store.NodeName(t.Node),
			Session:  t.Node,
			LastNode: t.LastNode,
		},
		Times: Times{
			CreatedAt:         t.CreatedAt,
			ScheduleNotBefore: t.ScheduleNotBefore(),
			StartedAt:         t.StartedAt,
			RecheckNotBefore:  t.RecheckNotBefore(),
			LostNotBefore:     t.LostNotBefore(),
			EndedAt:           t.EndedAt,
		},
		Params:   raw(t.Params),
		Result:   raw(t.Result),
		Error:    t.Error,
		ErrorCut: t.ErrorElided,
	}
	v.Substatus, v.Since = t.Substatus(now)
	if t.Wait != nil {
		v.SuspendedAt = t.Wait.SuspendedAt
		v.Requests = Requests{
			AskedBy:      t.Wait.By,
			Reason:       t.Wait.Reason,
			SuspendedBy:  t.Wait.SuspendedBy,
			SuspendedFor: t.Wait.SuspendedFor,
		}
	}
	if t.Kind != nil {
		v.Behavior, v.Creator = t.Kind.Behavior, t.Kind.Creator
	}
	if t.Progress != nil {
		v.Progress = &Progress{t.Progress.Done, t.Progress.Total, t.Progress.Note}
	}
	return v
}
