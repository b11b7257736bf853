package remote

import (
	"context"
	"errors"
	"net/http"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/task"
)

// submitter implements operations.Submitter.
type submitter struct {
	*link
	historian *ledger.Ledger
}

// submitBody returns the body of a submit, without its parameters.
func submitBody(behavior string, o task.SubmitOptions) api.Submit {
	s := api.Submit{
		Behavior:    behavior,
		Priority:    o.Priority,
		MaxAttempts: int64(o.MaxAttempts),
		TimeoutMs:   roundedUp(o.Timeout),
		RetainMs:    roundedUp(o.Retain),
		Tags:        o.Tags,
	}
	if !o.Deadline.IsZero() {
		s.Deadline = &o.Deadline
	}
	if o.ID != "" {
		s.ID = &o.ID
	}
	if !o.NotBefore.IsZero() {
		s.NotBefore = &o.NotBefore
	}
	if o.Delay > 0 {
		s.DelayMs = roundedUp(o.Delay)
	}
	return s
}

// roundedUp returns milliseconds: a short time is not none.
func roundedUp(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// SubmitRaw implements operations.Submitter.
func (s submitter) SubmitRaw(
	ctx context.Context, behavior string, params []byte, o task.SubmitOptions,
) (operations.Handle, error) {
	body, err := withParams(submitBody(behavior, o), params)
	var header http.Header
	if err == nil {
		header, err = keyed(o.RequestKey)
	}
	var told api.Submitted
	if err == nil {
		_, err = s.ask(ctx, request{
			does:   "submit",
			method: http.MethodPost,
			path:   "/v1/tasks",
			header: header,
			body:   body,
		}, &told)
	}
	if err != nil {
		return &handle{id: taskOf(err, o.ID), failed: err}, err
	}
	return s.submitted(told.ID, told.Joined, told.Repeated), nil
}

// taskOf returns the id of the task of a submit that failed: the one that the API tells, or else that was asked for.
func taskOf(err error, asked events.TaskID) events.TaskID {
	if p, is := errors.AsType[*problem.Problem](err); is && p.Task != "" {
		return events.TaskID(p.Task)
	}
	return asked
}

// submitted returns the handle of a task that was submitted.
func (s submitter) submitted(id events.TaskID, joined, repeated bool) *handle {
	return &handle{
		link:      s.link,
		historian: s.historian,
		id:        id,
		joined:    joined,
		repeated:  repeated,
		fresh:     !joined,
	}
}

// Attach implements operations.Submitter.
func (s submitter) Attach(id events.TaskID) operations.Handle {
	return &handle{
		link:      s.link,
		historian: s.historian,
		id:        id,
	}
}
