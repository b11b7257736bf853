// Package taskjson has runs of collections as EventNative's scheduler shows them: tasks of eight keys.
//
// The functions are pure. Keys, ids and the score follow the scheduler design of EventNative (Jitsu).
package taskjson

import (
	"fmt"

	"taskledger/events"
	"taskledger/task"
)

// Task is the JSON of a run.
type Task struct {
	ID         string `json:"id"` // "SOURCE_COLLECTION_UUID"
	Source     string `json:"source"`
	Collection string `json:"collection"`
	Priority   int64  `json:"priority"` // what Score returns
	// Times are RFC 3339 in UTC with milliseconds, or "".
	CreatedAt  events.Millis `json:"created_at"`
	StartedAt  events.Millis `json:"started_at"`  // of the latest attempt; "" = none has started
	FinishedAt events.Millis `json:"finished_at"` // "" = the run has not ended
	Status     Status        `json:"status"`
}

// Run holds what Of needs to know of a run.
type Run struct {
	ID         events.TaskID // "SOURCE_COLLECTION/UUID"
	Source     string
	Collection string
	Base       int64 // of its priority, 1 to 9,223,371
	Created    events.Millis
	Started    events.Millis // of the latest attempt; 0 = none has started
	Ended      events.Millis // counts if the run has ended
	Status     task.Status
	Substatus  task.Substatus
}

// Of returns the JSON of a run. It returns an error for an id that is not of the source and the collection, and the
// errors of Score.
func Of(r *Run) (Task, error) {
	id, err := Shown(r.ID)
	if err != nil {
		return Task{}, err
	}
	if affinity := r.Source + "_" + r.Collection; r.ID.Affinity() != affinity {
		return Task{}, fmt.Errorf("task id %q: want %s before the slash", r.ID, affinity)
	}
	score, err := Score(r.Base, r.Created)
	if err != nil {
		return Task{}, err
	}
	t := Task{
		ID:         id,
		Source:     r.Source,
		Collection: r.Collection,
		Priority:   score,
		CreatedAt:  r.Created,
		StartedAt:  r.Started,
		Status:     StatusOf(r.Status, r.Substatus),
	}
	if t.Status.Final() {
		t.FinishedAt = r.Ended
	}
	return t, nil
}
