// Package requests reads requests from a file: one JSON object on each line.
package requests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"taskledger/api/shape"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// MaxBytes bounds a file.
const MaxBytes = 64 << 20

// maxTold bounds the wrong lines that an error names.
const maxTold = 10

// Line is a request of a file.
type Line struct {
	Number int
	task.Request
}

// Read reads a file of requests, which all have a key together if keyed. A line that is wrong refuses all, unless skip
// is there to be told of it.
func Read(text []byte, keyed bool, skip func(line int, err error)) (lines []Line, err error) {
	if len(text) > MaxBytes {
		return nil, &task.LimitError{Field: "file of requests", Limit: MaxBytes, Got: int64(len(text))}
	}
	var wrong Problems
	number, good := 0, 0
	named := map[events.TaskID]int{}
	for line := range bytes.Lines(text) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		q, err := readRequest(line, keyed)
		if other := named[q.ID]; err == nil && keyed && other > 0 {
			err = &store.InvalidError{Field: "id", Problem: fmt.Sprintf("line %d of the same key names task %s, too", other, q.ID)}
		} else if q.ID != "" && err == nil {
			named[q.ID] = number
		}
		switch {
		case err == nil:
			if good++; good <= events.MaxRequestTasks || !keyed {
				lines = append(lines, Line{number, q})
			}
		case skip != nil:
			skip(number, err)
		default:
			wrong.Add(fmt.Errorf("line %d: %w", number, err))
		}
	}
	switch {
	case len(wrong.Errs) > 0:
		wrong.Text = fmt.Sprintf("%d lines are wrong, nothing is submitted", len(wrong.Errs)+wrong.More)
		if len(wrong.Errs) == 1 {
			wrong.Text = "1 line is wrong, nothing is submitted"
		}
		return nil, &wrong
	case good > events.MaxRequestTasks && keyed:
		return nil, &task.LimitError{Field: "requests", Limit: events.MaxRequestTasks, Got: int64(good)}
	case good == 0:
		return nil, &exitcode.UsageError{Problem: "there is no request to submit"}
	}
	return lines, nil
}

// requestLine is a request as a line of a file has it.
type requestLine struct {
	Behavior string          `json:"behavior"`
	Params   json.RawMessage `json:"params"`
	ID       *string         `json:"id"`
	Key      *string         `json:"key"`
	Delay    *string         `json:"delay"`
	At       *string         `json:"at"`
	Priority *int64          `json:"priority"`

	MaxAttempts *int64  `json:"max_attempts"`
	Timeout     *string `json:"attempt_timeout"`
	Retain      *string `json:"retain"`

	Tags     []string `json:"tags"`
	Deadline *string  `json:"deadline"`
}

// orZero returns the value of a field that may be left out, or null.
func orZero[T any](field *T) (value T) {
	if field != nil {
		value = *field
	}
	return value
}

// readRequest reads one line. keyed says that all lines have a key together.
func readRequest(line []byte, keyed bool) (q task.Request, err error) {
	var l requestLine
	if err := checkJSON(line); err != nil {
		return q, &exitcode.UsageError{Problem: err.Error()}
	}
	if err := shape.Decode(line, &l); err != nil {
		return q, &exitcode.UsageError{Problem: strings.TrimPrefix(err.Error(), "body: ")}
	}
	o := task.SubmitOptions{Priority: orZero(l.Priority)}
	at, delay := orZero(l.At), orZero(l.Delay)
	switch {
	case l.Behavior == "":
		return q, &exitcode.UsageError{Problem: "behavior is missing"}
	case l.ID != nil && *l.ID == "":
		return q, &exitcode.UsageError{Problem: "id is empty: leave it out for the default"}
	case l.Key != nil && *l.Key == "":
		return q, &exitcode.UsageError{Problem: "key is empty: leave it out for the default"}
	case l.Key != nil && keyed:
		return q, &exitcode.UsageError{Problem: "it has a key of its own beside --key"}
	case at != "" && delay != "":
		return q, &exitcode.UsageError{Problem: "at and delay exclude each other"}
	case l.ID != nil:
		o.ID = events.TaskID(*l.ID)
		if err := o.ID.Validate(); err != nil {
			return q, &store.InvalidError{Field: "id", Problem: err.Error()}
		}
	}
	if l.Key != nil {
		o.RequestKey = *l.Key
	}
	if o.Priority < 0 || o.Priority > events.MaxPriority {
		return q, &task.LimitError{Field: "priority", Limit: events.MaxPriority, Got: o.Priority}
	}
	if n := orZero(l.MaxAttempts); n < 0 || n > events.MaxPolicyCount {
		return q, &task.LimitError{Field: "max_attempts", Limit: events.MaxPolicyCount, Got: n}
	}
	o.MaxAttempts = int(orZero(l.MaxAttempts))
	for _, given := range []struct {
		name, text string
		is         *time.Duration
	}{{"delay", delay, &o.Delay}, {"attempt_timeout", orZero(l.Timeout), &o.Timeout}, {"retain", orZero(l.Retain), &o.Retain}} {
		if given.text == "" {
			continue
		}
		if *given.is, err = time.ParseDuration(given.text); err != nil || *given.is < 0 {
			return q, &exitcode.UsageError{Problem: fmt.Sprintf("%s %q: want a duration such as 90s", given.name, given.text)}
		}
		if *given.is > events.MaxDelay {
			return q, &exitcode.UsageError{Problem: fmt.Sprintf("%s %q: want ten years at most", given.name, given.text)}
		}
	}
	for _, given := range []struct {
		name, text string
		is         *time.Time
	}{{"at", at, &o.NotBefore}, {"deadline", orZero(l.Deadline), &o.Deadline}} {
		if given.text == "" {
			continue
		}
		if *given.is, err = flags.Time(given.name, given.text, flags.FromNow); err != nil {
			return q, err
		}
		if time.Until(*given.is) > events.MaxDelay {
			return q, &exitcode.UsageError{Problem: fmt.Sprintf("%s %q: want ten years ahead at most", given.name, given.text)}
		}
	}
	if o.Tags, err = Tags(l.Tags); err != nil {
		return q, err
	}
	if err := events.ValidateBehavior(l.Behavior); err != nil {
		return q, &exitcode.UsageError{Problem: err.Error()}
	}
	if n := len(l.Params); n > events.MaxPayloadBytes {
		return q, &task.LimitError{Field: "parameters", Limit: events.MaxPayloadBytes, Got: int64(n)}
	}
	if string(l.Params) == "null" {
		l.Params = nil
	}
	return task.Request{Name: l.Behavior, Params: l.Params, SubmitOptions: o}, nil
}

// Tags returns tags that a task can have, each once.
func Tags(tags []string) ([]string, error) {
	tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	if n := len(tags); n > events.MaxTags {
		return nil, &task.LimitError{Field: "tags", Limit: events.MaxTags, Got: int64(n)}
	}
	for _, tag := range tags {
		if err := events.ValidateTag(tag); err != nil {
			return nil, &exitcode.UsageError{Problem: err.Error()}
		}
	}
	return tags, nil
}

// checkJSON says where a line is no JSON, and whether there is more than one value.
func checkJSON(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		wrong, _ := errors.AsType[*json.SyntaxError](err)
		if wrong == nil {
			return fmt.Errorf("want a JSON object: %w", err)
		}
		return fmt.Errorf("want a JSON object: byte %d: %w", wrong.Offset, wrong)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("want one JSON object on a line")
	}
	return nil
}

// Refused reports whether for certain nothing was submitted that ended with an error.
func Refused(err error) bool {
	_, overloaded := errors.AsType[*task.OverloadError](err)
	return overloaded || exitcode.Of(err) == exitcode.Usage || errors.Is(err, task.ErrUnknownBehavior) || errors.Is(err, store.ErrUnavailable) && !errors.Is(err, task.ErrUnknown)
}

// Problems holds the errors of lines, and has their class.
type Problems struct {
	Text string
	Errs []error
	More int // errors that are counted, not kept
}

// Add keeps an error that would be named, and counts it otherwise.
func (e *Problems) Add(err error) {
	if len(e.Errs) < maxTold {
		e.Errs = append(e.Errs, err)
	} else {
		e.More++
	}
}

// Error names the first lines.
func (e *Problems) Error() string {
	told := errors.Join(e.Errs[:min(len(e.Errs), maxTold)]...)
	if more := len(e.Errs) - maxTold + e.More; more > 0 {
		return fmt.Sprintf("%s:\n%v\nand %d more", e.Text, told, more)
	}
	return fmt.Sprintf("%s:\n%v", e.Text, told)
}

// Unwrap returns the errors that are kept.
func (e *Problems) Unwrap() []error { return e.Errs }
