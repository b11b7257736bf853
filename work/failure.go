package work

import (
	"errors"
	"fmt"
)

// CodePanic is the code of an item whose function panicked, for rules and in reports.
const CodePanic = "panic"

// ItemsError tells that the items of a bucket, or the changes of a stream, could not be had: the iterator failed, or
// the function of keys did. It fails the attempt.
type ItemsError struct {
	Partition string // id
	Stream    bool   // the partition is one: it has one bucket, which nobody knows
	Bucket    Bucket
	Err       error
}

// Error implements error.
func (e *ItemsError) Error() string {
	if e.Stream {
		return fmt.Sprintf("changes of stream %s: %v", e.Partition, e.Err)
	}
	return fmt.Sprintf("items of bucket %d (%s) of partition %s: %v", e.Bucket.Number, e.Bucket, e.Partition, e.Err)
}

// Unwrap returns the cause.
func (e *ItemsError) Unwrap() error { return e.Err }

// StopError tells that a rule stopped the work at the failure of an item. It is final.
type StopError struct {
	Partition string // id
	Bucket    int64
	Rule      int // its place in the partition's Rules, from 0 on; -1: a stream without a rule for the error stops
	Item      ItemError
	At        string // of a stream: the token or the place of the change
	Err       error  // what Process returned

	counted bool // the rule stops at a later failure than the first one, and its counter has reached the limit
}

// Error implements error.
func (e *StopError) Error() string {
	what := fmt.Sprintf("item %s in bucket %d of partition %s", e.Item.Item, e.Bucket, e.Partition)
	if e.At != "" {
		what = fmt.Sprintf("change of %s at %.64q in stream %s", e.Item.Item, e.At, e.Partition)
	}
	then := fmt.Sprintf("rule %d stops the work", e.Rule)
	if e.Rule < 0 {
		then = "no rule has the stream go on"
	}
	return fmt.Sprintf("%s failed with code %q, and %s: %v", what, e.Item.Code, then, e.Err)
}

// Unwrap returns what Process returned.
func (e *StopError) Unwrap() error { return e.Err }

// heldError tells that a change failed again in the task of its hold. The policy of the task decides.
type heldError struct {
	key string
	at  string
	is  ItemError
	err error
}

// Error implements error.
func (e *heldError) Error() string {
	return fmt.Sprintf("change of %.64q at %.64q: %s", e.key, e.at, e.is.Message)
}

// Unwrap returns the cause.
func (e *heldError) Unwrap() error { return e.err }

// tooLargeError tells that a change is too large for a hold. It stops the stream and is final.
type tooLargeError struct{ error }

// Unwrap returns the cause.
func (e *tooLargeError) Unwrap() error { return e.error }

// ThresholdError tells that a counter has reached its limit, so that the item must not be counted: what it counts must
// not be done. It stops the work and is final.
type ThresholdError struct {
	Partition string // id
	Counter   string
	Limit     int64
}

// Error implements error.
func (e *ThresholdError) Error() string {
	return fmt.Sprintf("counter %s of partition %s has reached its limit of %d", e.Counter, e.Partition, e.Limit)
}

// skipError is made by Skip.
type skipError struct{ reason string }

// Error implements error.
func (e *skipError) Error() string { return "skipped: " + e.reason }

// Skip is returned by Process for an item that it leaves out: the item is skipped, neither done nor failed, and no rule
// is asked. The reason is logged at the level Debug. The error may be wrapped.
func Skip(reason string) error { return &skipError{reason} }

func skipped(err error) (*skipError, bool) { return errors.AsType[*skipError](err) }
