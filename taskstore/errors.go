package taskstore

import (
	"taskledger/events"
	"taskledger/task"
)

// What callers meet, by the names of the packages that they are of.
type (
	Millis        = events.Millis
	OverloadError = task.OverloadError
)

// The errors of a key, see package task.
var (
	ErrUnknown      = task.ErrUnknown
	ErrOtherRequest = task.ErrOtherRequest
)
