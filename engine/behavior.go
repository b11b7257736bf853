package engine

import (
	"context"

	"taskledger/store"
	"taskledger/task"
)

// What a behavior is made of, and how a submit is asked for: see package task.
type (
	Behavior      = task.Behavior
	Plan          = task.Plan
	Attempt       = task.Attempt
	Outcome       = task.Outcome
	Policy        = task.Policy
	Backoff       = task.Backoff
	SubmitOptions = task.SubmitOptions
)

// Errors that callers branch on, and what they hold: see packages task and store.
var (
	ErrUnknownBehavior = task.ErrUnknownBehavior
	ErrNotFound        = task.ErrNotFound
	ErrClosed          = task.ErrClosed
	ErrUnavailable     = store.ErrUnavailable
	ErrUnknown         = task.ErrUnknown
	ErrCancelled       = task.ErrCancelled
)

// Errors with fields: see packages task and store.
type (
	TaskError     = task.Error
	LimitError    = task.LimitError
	InvalidError  = store.InvalidError
	StateError    = task.StateError
	OverloadError = task.OverloadError
)

type clientKey struct{}

// ClientFromContext returns the client of the node that makes the attempt, for a Behavior that submits further tasks and waits for
// them; false if ctx belongs to no attempt.
func ClientFromContext(ctx context.Context) (*Client, bool) {
	c, ok := ctx.Value(clientKey{}).(*Client)
	return c, ok
}
