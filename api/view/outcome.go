package view

import (
	"encoding/json"

	"taskledger/events"
	"taskledger/task"
)

// Outcome is an outcome as JSON shows it.
type Outcome struct {
	ID     events.TaskID   `json:"id"`
	Status task.Status     `json:"status,omitzero"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// Error tells why a task failed, and in which attempt.
type Error struct {
	Attempt int `json:"attempt"`
	events.Error
}

// OfOutcome shows how a task ended: failed is nil after a success.
func OfOutcome(id events.TaskID, result []byte, failed *task.Error) Outcome {
	v := Outcome{ID: id, Status: task.Success, Result: events.JSON(result).Readable()}
	if failed != nil {
		v.Status = task.Failure
		v.Error = &Error{failed.Attempt, events.Error{
			Code:       failed.Code,
			Message:    failed.Message,
			Retryable:  failed.Retryable,
			Properties: failed.Properties,
		}}
	}
	return v
}
