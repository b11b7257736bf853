package api

import (
	"taskledger/events"
	"taskledger/task"
)

// checkID refuses an invalid id of a task.
func checkID(field string, id events.TaskID) error {
	if err := atMost(field, len(id), events.MaxIDBytes); err != nil {
		return err
	}
	if err := id.Validate(); err != nil {
		return invalid(field, "%s", err)
	}
	return nil
}

// checkBehavior refuses an invalid name of a behavior.
func checkBehavior(name string) error {
	if err := atMost("behavior", len(name), events.MaxBehaviorBytes); err != nil {
		return err
	}
	if err := events.ValidateBehavior(name); err != nil {
		return invalid("behavior", "%s", err)
	}
	return nil
}

func checkReason(reason string) error {
	if err := atMost("reason", len(reason), events.MaxNameBytes); err != nil {
		return err
	}
	if err := events.CheckReason(reason); err != nil {
		return invalid("reason", "%s", err)
	}
	return nil
}

// atMost refuses a field of more bytes than its limit.
func atMost(field string, got, limit int) error {
	if got <= limit {
		return nil
	}
	return &task.LimitError{Field: field, Limit: int64(limit), Got: int64(got)}
}
