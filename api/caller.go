package api

import (
	"crypto/rand"
	"strings"

	"taskledger/events"
)

// eventCaller describes the caller for the events of a request. What a caller says of its request is cut to what an
// event takes.
func (c *Call) eventCaller() events.Caller {
	if c.by == nil {
		return events.Caller{}
	}
	return events.Caller{
		Principal:   c.by.Name,
		RequestID:   c.requestID(),
		Traceparent: traceparent(c.r.Header.Get("traceparent")),
	}
}

const maxRequestID = 64

// requestID names the request in logs and events: as the caller does, or drawn.
func (c *Call) requestID() string {
	id := c.r.Header.Get("X-Request-Id")
	plain := !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
	if id == "" || len(id) > maxRequestID || !plain {
		id = rand.Text()[:16]
	}
	c.w.Header()["X-Request-Id"] = []string{id}
	return id
}

// traceparent returns the trace context of the caller, if an event takes it.
func traceparent(text string) string {
	if (&events.Caller{Traceparent: text}).Validate() != nil {
		return ""
	}
	return text
}
