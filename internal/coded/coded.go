// Package coded holds the code that a function gives to its error by behaviors.Code, for all who read it.
package coded

import "errors"

// Error is an error with a code and properties.
type Error struct {
	Code       string // "" = none of its own
	Properties map[string]string
	Err        error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error that has the code.
func (e *Error) Unwrap() error { return e.Err }

// Of returns the code of an error, "" if it has none. If it wraps several, the outermost counts.
func Of(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}
