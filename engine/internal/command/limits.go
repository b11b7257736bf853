package command

import (
	"fmt"
	"time"
	"unicode/utf8"

	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// atMost refuses a field of more than limit bytes or elements.
func atMost(field string, got, limit int) error {
	if got <= limit {
		return nil
	}
	return &task.LimitError{Field: field, Limit: int64(limit), Got: int64(got)}
}

func limitID(id events.TaskID) error { return atMost("id", len(id), events.MaxIDBytes) }

// limitNote refuses what a person says of something, unless it is short enough and UTF-8.
func limitNote(field, text string) error {
	if !utf8.ValidString(text) {
		return &store.InvalidError{Field: field, Problem: "no UTF-8"}
	}
	return atMost(field, len(text), events.MaxNameBytes)
}

// limitTime refuses times that arithmetic with others could overflow.
func limitTime(field string, at events.Millis) error {
	if at < 0 || at > MaxTime {
		problem := fmt.Sprintf("%d ms, want 0 to %d, the end of the year 9999", at, MaxTime)
		return &store.InvalidError{Field: field, Problem: problem}
	}
	return nil
}

func limitDelay(d time.Duration) error {
	if d < 0 || d > events.MaxDelay {
		return &store.InvalidError{Field: "delay", Problem: fmt.Sprintf("%s, want 0 to ten years", d)}
	}
	return nil
}

func limitNode(node string) error     { return atMost("node", len(node), events.MaxNameBytes) }
func limitBehavior(name string) error { return atMost("behavior", len(name), events.MaxBehaviorBytes) }

// limitPayload refuses a payload that is too large, or in a codec that this program does not know. The two ends
// check that text is JSON: to read all of it would cost an owner more than to decide its command.
func limitPayload(field string, p events.Payload) error {
	if len(p) > events.MaxPayloadBytes+1 {
		return &task.LimitError{Field: field, Limit: events.MaxPayloadBytes, Got: int64(len(p)) - 1}
	}
	if _, err := p.JSON(); err != nil {
		return &store.InvalidError{Field: field, Problem: err.Error()}
	}
	return nil
}

// AnyTime is a Next in the past, MaxTime the latest one: the last millisecond of the year 9999.
const (
	AnyTime events.Millis = 1
	MaxTime events.Millis = 253_402_300_799_999
)
