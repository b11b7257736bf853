package behaviors

import (
	"errors"
	"maps"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/internal/coded"
)

// Cancel makes err final: the task fails, is not retried, and AfterFailure is not called. If the same error also
// wraps a Release, Snooze or RetryAfter, Cancel prevails. The failure has the code "failed", unless Code gives it
// another. A nil err still fails the attempt.
func Cancel(err error) error { return &cancelError{orUnnamed(err)} }

// Snooze ends the attempt without failure and runs the task again after d, at most ten years. No attempt is used up
// and no rule is called. 0 means at once, which is at the earliest 50 ms after the start of the attempt. If d is
// negative or longer, the error is a *store.InvalidError, which fails the attempt like any other error.
func Snooze(d time.Duration) error {
	if err := checkDelay("snooze", d); err != nil {
		return err
	}
	return &snoozeError{max(d, leastWait)}
}

// Release gives the attempt back, as a node that stops does: it was neither a failure nor a loss, no attempt is used
// up and no rule is called. The task is ready for any node again after d, at most ten years. 0 means at once, which
// is at the earliest 50 ms after the start of the attempt. If d is negative or longer, the error is an
// *store.InvalidError, which fails the attempt like any other error.
func Release(d time.Duration) error {
	if err := checkDelay("release", d); err != nil {
		return err
	}
	return &releaseError{d}
}

// RetryAfter fails the attempt and runs the task again after d, at most ten years, in place of the policy's back-off.
// The attempt counts towards Policy.MaxAttempts, and AfterFailure is called. If d is negative or longer, the back-off
// stays as it is, and a *store.InvalidError is joined to err. A nil err still fails the attempt.
func RetryAfter(d time.Duration, err error) error {
	if invalid := checkDelay("retry after", d); invalid != nil {
		return errors.Join(orUnnamed(err), invalid)
	}
	return &retryError{d, orUnnamed(err)}
}

// Code gives err a code and properties that callers see in task.Error, in every process. With code "" the code
// stays "failed". If an error wraps several codes, the outermost counts. A nil err still fails the attempt.
func Code(code string, err error, properties map[string]string) error {
	return &coded.Error{
		Code:       code,
		Properties: maps.Clone(properties),
		Err:        orUnnamed(err),
	}
}

type (
	cancelError struct{ error }
	snoozeError struct{ after time.Duration }

	releaseError struct{ after time.Duration }

	retryError struct {
		after time.Duration
		error
	}
)

func (e *cancelError) Unwrap() error { return e.error }
func (e *retryError) Unwrap() error  { return e.error }

func (e *snoozeError) Error() string { return "snooze for " + e.after.String() }

func (e *releaseError) Error() string { return "released for " + e.after.String() }

func orUnnamed(err error) error {
	if err == nil {
		return errors.New("no reason given")
	}
	return err
}

// verdict holds what a handler's error, which may be wrapped and composed, says about the attempt and what comes next.
type verdict struct {
	err        error
	final      bool
	snooze     time.Duration // above 0: no failure
	release    *releaseError // nil = none
	retry      bool
	retryAfter time.Duration
}

func verdictOf(err error) verdict {
	v := verdict{err: err}
	_, v.final = errors.AsType[*cancelError](err)
	v.release, _ = errors.AsType[*releaseError](err)
	if e, ok := errors.AsType[*snoozeError](err); ok {
		v.snooze = e.after
	}
	if e, ok := errors.AsType[*retryError](err); ok {
		v.retry, v.retryAfter = true, e.after
	}
	return v
}

// failure returns the error as it is recorded.
func (v verdict) failure() *events.Error {
	e := events.Error{Code: events.CodeFailed, Message: v.err.Error(), Retryable: !v.final}
	if c, ok := errors.AsType[*coded.Error](v.err); ok {
		e.Properties = c.Properties
		if c.Code != "" {
			e.Code = c.Code
		}
	}
	return fit(e)
}

// rejection is the failure of what no repetition can mend.
func rejection(err error) *events.Error {
	return fit(events.Error{Code: events.CodeRejected, Message: err.Error()})
}

// fit makes the error storable: its texts are UTF-8 and within the limits.
func fit(e events.Error) *events.Error {
	e = e.Fit()
	e.Code, e.Message = strings.ToValidUTF8(e.Code, "?"), strings.ToValidUTF8(e.Message, "?")
	return &e
}
