package view

import (
	"taskledger/events"
	"taskledger/tasklog"
)

// LogLine is a line of the log of a task as JSON shows it.
type LogLine struct {
	Time    events.Millis `json:"time"`
	Level   string        `json:"level"`
	Message string        `json:"message"`
	Attempt uint32        `json:"attempt"`
	// Number counts within the attempt. A gap has that of its last line, 0 where it is not known.
	Number  uint64 `json:"number,omitempty"`
	Missing uint64 `json:"missing,omitempty"` // lines, of a gap; 0 = the line is none
}

// OfLogLine shows a line of a log.
func OfLogLine(l tasklog.TaskLine) LogLine {
	return LogLine{
		Time:    l.At,
		Level:   l.Level.String(),
		Message: l.Text,
		Attempt: l.Attempt,
		Number:  l.Number,
		Missing: l.Missing,
	}
}
