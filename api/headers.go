package api

import (
	"math"
	"strconv"
	"strings"
	"time"

	"taskledger/events"
)

const (
	keyHeader    = "Idempotency-Key"
	ageHeader    = "Idempotency-Age"
	withinHeader = "Idempotency-Within"
	matchHeader  = "If-Match"
)

// Key returns the key of the request, "" for none. An empty key is an error: its sender would believe that
// repetitions are recognized.
func (c *Call) Key() (string, error) {
	switch all := c.r.Header.Values(keyHeader); {
	case len(all) == 0:
		return "", nil
	case len(all) > 1:
		return "", invalid(keyHeader, "it is there more than once")
	case all[0] == "":
		return "", invalid(keyHeader, "it is empty: leave it out for a request without a key")
	default:
		return all[0], nil
	}
}

// Age returns how long ago the request was first sent, by the header Idempotency-Age; 0 = it is no repetition.
func (c *Call) Age() (time.Duration, error) {
	all := c.r.Header.Values(ageHeader)
	if len(all) == 0 {
		return 0, nil
	}
	const most = math.MaxInt64 / int64(time.Millisecond)
	n, err := strconv.ParseInt(all[0], 10, 64)
	if len(all) > 1 || err != nil || n < 0 || n > most {
		return 0, invalid(ageHeader, "%.64q: want one number of 0 to %d, in milliseconds", all, most)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// Within returns the count of the header Idempotency-Within: at most so many requests of the client were carried out
// since the repeated one was first sent. It returns 0 where nobody has counted.
func (c *Call) Within() (int, error) {
	all := c.r.Header.Values(withinHeader)
	if len(all) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(all[0], 10, 32)
	if len(all) > 1 || err != nil || n < 0 {
		return 0, invalid(withinHeader, "%.64q: want one number of 0 to %d", all, math.MaxInt32)
	}
	return int(n), nil
}

// Match returns the entity tag of the header If-Match without its quotes; "" = there is no such header. Lists, * and
// weak tags are errors.
func (c *Call) Match() (string, error) {
	all := c.r.Header.Values(matchHeader)
	if len(all) == 0 {
		return "", nil
	}
	tag := strings.Trim(all[0], `"`)
	if len(all) > 1 || tag == "" || strconv.Quote(tag) != all[0] {
		return "", invalid(matchHeader, "%.64q: want one tag as an ETag had it, in quotes", all)
	}
	return tag, nil
}

// matchVersion returns the version of a task that the header If-Match names, zero for none.
func (c *Call) matchVersion() (seen events.Position, err error) {
	tag, err := c.Match()
	if tag == "" || err != nil {
		return seen, err
	}
	if seen, err = events.ParsePosition(tag); err != nil || seen.Ref == 0 {
		return seen, invalid(matchHeader, "%.64q: want the version of a task, in quotes", tag)
	}
	return seen, nil
}
