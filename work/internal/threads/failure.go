package threads

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// The ways in which an iterator breaks the rules of iter.Seq2. The error of Run wraps them in an *IteratorError.
var (
	ErrYieldedAfterStop   = errors.New("it yielded after it was told to stop")
	ErrYieldedAfterReturn = errors.New("it yielded after it had returned")
	ErrYieldedSideBySide  = errors.New("it yielded from two goroutines at once")
)

// IteratorError tells that the iterator failed, so not all items were seen. Err holds what it yielded, a *PanicError,
// an *EndedError, an *AbandonedError or one of the errors above.
type IteratorError struct{ Err error }

// Error implements error.
func (e *IteratorError) Error() string { return "iterator: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *IteratorError) Unwrap() error { return e.Err }

// AbandonedError tells that a function of somebody else did not return when it was told to stop, and was left behind.
type AbandonedError struct{ Name string }

// Error implements error.
func (e *AbandonedError) Error() string {
	return e.Name + " does not return, though its context has ended: its goroutine is left behind"
}

// PanicError tells that a function of somebody else panicked.
type PanicError struct {
	In    string // the function
	Value any
	Stack []byte
}

// Error implements error. It leaves out the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("%s: panic: %v", e.In, e.Value) }

// EndedError tells that a function of somebody else ended its goroutine, by runtime.Goexit.
type EndedError struct{ In string }

// Error implements error.
func (e *EndedError) Error() string { return e.In + " ended its goroutine" }

// Watch calls fn, which is somebody else's. It calls tell with a *PanicError if fn panics and with an *EndedError if fn
// ends the goroutine, which then goes on ending.
func Watch(in string, fn func(), tell func(error)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if reason := recover(); reason != nil {
			tell(&PanicError{In: in, Value: reason, Stack: debug.Stack()})
			return
		}
		tell(&EndedError{In: in})
	}()
	fn()
	returned = true
}
