package api

import (
	"strconv"
	"strings"
	"time"

	"taskledger/events"
)

// Param returns a parameter of the query, "" for none.
func (c *Call) Param(name string) string { return c.query.Get(name) }

// Flag reads a parameter that is true or false.
func (c *Call) Flag(name string) (bool, error) {
	switch text := c.Param(name); text {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	default:
		return false, invalid(name, "%.32q: want true or false", text)
	}
}

// Number reads a parameter that is a whole number from least to most; without the parameter it returns otherwise.
func (c *Call) Number(name string, otherwise, least, most int) (int, error) {
	text := c.Param(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, invalid(name, "%.32q: want %d to %d", text, least, most)
	}
	return n, nil
}

// Wait reads the parameter wait: how long the request may wait, MaxWait at most; is = false where there is no such
// parameter.
func (c *Call) Wait() (d time.Duration, is bool, err error) {
	text := c.Param("wait")
	if text == "" {
		return 0, false, nil
	}
	d, err = time.ParseDuration(text)
	if err != nil || d < 0 || d > MaxWait {
		return 0, false, invalid("wait", "%.32q: want a time such as 5s, %s at most", text, MaxWait)
	}
	return d, true, nil
}

// Time reads a parameter that is a time in RFC 3339 after the beginning of 1970; the zero time for none.
func (c *Call) Time(name string) (time.Time, error) {
	text := c.Param(name)
	if text == "" {
		return time.Time{}, nil
	}
	return timeOf(name, text)
}

// timeOf reads a time. The beginning of 1970 is stored as no time, so that a time has to be after it.
func timeOf(name, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return at, invalid(name, "%.40q: want a time such as 2026-11-21T12:00:00Z", text)
	case events.MillisOf(at) <= 0:
		return at, invalid(name, "%.40q: want a time after 1970-01-01T00:00:00Z", text)
	}
	return at, nil
}

// pathOf returns an id as a segment of a path.
func pathOf(id events.TaskID) string { return strings.Replace(string(id), "/", "~", 1) }

// idOf returns the id that a text of a URL names.
func idOf(text string) events.TaskID { return events.TaskID(strings.Replace(text, "~", "/", 1)) }
