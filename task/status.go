package task

import (
	"fmt"
	"strconv"
)

// Status is one of the four statuses of a task.
type Status uint8

// The statuses; no task has the zero value. Of a task that has ended, Task.Final says whether it runs again.
const (
	Created Status = 1 + iota // no attempt has started
	Running                   // an attempt runs, or waits to run again after a snooze, a loss or a release
	Success                   // the last attempt succeeded; the task may be repeated
	Failure                   // the last attempt failed or was lost once too often, or the task was cancelled
)

var statusNames = [...]string{"NONE", "CREATED", "RUNNING", "SUCCESS", "FAILURE"}

// String returns the status in capitals.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "Status(" + strconv.Itoa(int(s)) + ")"
}

// MarshalText is String.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseStatus.
func (s *Status) UnmarshalText(b []byte) (err error) {
	*s, err = ParseStatus(string(b))
	return err
}

// ParseStatus reads CREATED, RUNNING, SUCCESS or FAILURE, in capitals. Its error, for people, lists them.
func ParseStatus(s string) (Status, error) {
	for i, name := range statusNames[1:] {
		if s == name {
			return Status(i + 1), nil
		}
	}
	return 0, fmt.Errorf("status %q: want CREATED, RUNNING, SUCCESS or FAILURE", s)
}
