package sync

import (
	"fmt"
	"math"
	"time"

	"taskledger/api"
	"taskledger/events"
	"taskledger/store"
)

// maxLimit bounds the tasks and lines of a page.
const maxLimit = 1000

// invalid returns the error of a parameter.
func invalid(name, format string, args ...any) error {
	return &store.InvalidError{Field: name, Problem: fmt.Sprintf(format, args...)}
}

// span is a range of time, both ends inclusive. Nothing is in it if to is before from.
type span struct{ from, to events.Millis }

const (
	first events.Millis = 1 // a bound of 0 is none
	last  events.Millis = math.MaxInt64
)

func (s span) empty() bool { return s.to < s.from }

// spanOf reads the parameters start and end. Without one, that side is open.
func spanOf(c *api.Call) (s span, err error) {
	s = span{first, last}
	if text := c.Param("start"); text != "" {
		at, err := instant("start", text)
		if err != nil {
			return s, err
		}
		s.from = max(first, events.MillisOf(at.Add(time.Millisecond-1)))
	}
	if text := c.Param("end"); text != "" {
		at, err := instant("end", text)
		if err != nil {
			return s, err
		}
		s.to = events.MillisOf(at)
	}
	return s, nil
}

// instant reads a time.
func instant(name, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, invalid(name, "%.40q: want a time such as 2026-11-21T12:00:00Z", text)
	}
	return at, nil
}

// limitOf reads the parameter limit; 0 = there is none.
func limitOf(c *api.Call) (int, error) { return c.Number("limit", 0, 1, maxLimit) }
