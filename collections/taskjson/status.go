package taskjson

import (
	"fmt"
	"strings"

	"taskledger/task"
)

// Status is one of four.
type Status string

// The statuses.
const (
	Scheduled Status = "SCHEDULED" // no attempt runs, and one will
	Running   Status = "RUNNING"   // an attempt runs
	Failed    Status = "FAILED"    // the run has ended without a success, or was cancelled
	Success   Status = "SUCCESS"   // the run has ended
)

// Final reports that the run has ended.
func (s Status) Final() bool { return s == Failed || s == Success }

// ParseStatus reads a status in letters of either case.
func ParseStatus(text string) (Status, error) {
	switch s := Status(strings.ToUpper(text)); s {
	case Scheduled, Running, Failed, Success:
		return s, nil
	}
	return "", fmt.Errorf("status %.32q: want %s, %s, %s or %s", text, Scheduled, Running, Failed, Success)
}

// StatusOf returns the status of a task. One that waits is Scheduled, whatever its last attempt came to; one that was
// cancelled is Running as long as its attempt goes on, and then Failed.
func StatusOf(s task.Status, sub task.Substatus) Status {
	switch {
	case sub == task.SubRunning:
		return Running
	case sub == task.SubFinal && s == task.Success:
		return Success
	case sub == task.SubFinal, sub == task.SubCancelled:
		return Failed
	}
	return Scheduled
}
