package filejournal

import (
	"errors"
	"fmt"

	"taskledger/events"
)

// DamagedError reports that a file contradicts itself or others. It wraps events.ErrDamaged.
type DamagedError struct {
	File    string
	Offset  int64
	Problem string
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged at offset %d: %s", e.File, e.Offset, e.Problem)
}

// Unwrap returns events.ErrDamaged.
func (e *DamagedError) Unwrap() error { return events.ErrDamaged }

// damagedAt returns an error as damage of a file, unless it tells of some already.
func damagedAt(name string, at int64, err error) error {
	if damaged, is := errors.AsType[*DamagedError](err); is {
		return damaged
	}
	return &DamagedError{name, at, err.Error()}
}
