package tasklog

import (
	"fmt"

	"taskledger/events"
	"taskledger/store"
)

// ErrNone reports that no store of logs is configured. It wraps store.ErrUnavailable.
var ErrNone = fmt.Errorf("no logs are kept here: %w", store.ErrUnavailable)

// ErrGone reports that a log is not kept any more. It wraps store.ErrTrimmed.
var ErrGone = fmt.Errorf("the log is not kept any more: %w", store.ErrTrimmed)

// Selection selects lines of a task for whoever knows its id alone. The zero value selects all of its present life.
type Selection struct {
	Since, Until events.Millis // both inclusive; Until 0 = without an end
	Attempt      uint32        // 0 = those of all attempts
	Level        Level         // lines of lower levels are left out; Info = none
	Cursor       string        // Told.Cursor of the page before, of the same task; "" = from the beginning
	Limit        int           // lines of a page, 1 to MaxPageLines; 0 = MaxPageLines
}

// Told holds a page of the log of a task, as engine.Client.Log returns it.
type Told struct {
	Lines  []TaskLine
	Cursor string // asks for what follows, also where this page reaches the end: what is written later comes there
	More   bool   // the end has not been reached
	// Ended says that no attempt of the selection runs or will, and that its range of time is over. What was written
	// shortly before may still come.
	Ended    bool
	Behavior string // of the task; told with an error, too, once the task was found
}
