// Package problem converts the errors of the engine to problem details of a known type (RFC 9457), as the HTTP API
// answers with them, and back again for a client in Go.
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// ContentType names the media type of problem details.
const ContentType = "application/problem+json"

// Type names a kind of problem. In a document it stands behind Prefix.
type Type string

// Prefix begins the URI of every type.
const Prefix = "urn:taskledger:problem:"

// The types of problems.
const (
	Malformed       Type = "malformed"        // no JSON, an unknown field, a field of another type, more than one value
	Invalid         Type = "invalid"          // a field with a value that cannot be; field names it
	Limit           Type = "limit"            // a text or number over its limit; field, limit and got tell
	Slow            Type = "slow"             // a body that has not come in time
	TooLarge        Type = "too-large"        // a body, or parameters, over their limit
	Unauthorized    Type = "unauthorized"     // no token, or one that is not known
	Forbidden       Type = "forbidden"        // a token that may not do this
	NotFound        Type = "not-found"        // no such task or route, or not for this token
	Method          Type = "method"           // Allow lists the route's methods
	MediaType       Type = "media-type"       // a body that is no application/json
	State           Type = "state"            // the task's state does not allow it
	Changed         Type = "changed"          // it is no longer as If-Match says
	OtherCount      Type = "other-count"      // another number of tasks matches than expected; got tells
	NotKept         Type = "not-kept"         // it was trimmed, and is not archived
	KeyReused       Type = "key-reused"       // the key stands for another request
	UnknownBehavior Type = "unknown-behavior" // no live node has it
	TooMany         Type = "too-many"         // this caller asks too much; Retry-After
	Overloaded      Type = "overloaded"       // the store or a shard is full or busy; Retry-After
	Unavailable     Type = "unavailable"      // the cluster cannot be asked; nothing was accepted
	OutcomeUnknown  Type = "outcome-unknown"  // it may have been accepted or not: repeat it with the same id or key
	NoneSubmitted   Type = "none-submitted"   // of many: refused for another one's sake
	Timeout         Type = "timeout"          // no answer in time to a question
	Internal        Type = "internal"
)

// Problem is an error in the form of a response.
type Problem struct {
	Type   Type   `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Task   string `json:"task,omitempty"`  // id of the task that the problem concerns
	Field  string `json:"field,omitempty"` // name of the field of the request that is wrong
	Limit  *int64 `json:"limit,omitempty"`
	Got    *int64 `json:"got,omitempty"`
	// RetryAfter is the header of that name, in whole seconds; 0 = none.
	RetryAfter int64 `json:"retry_after,omitempty"`
	// Changed says of State that the task is no longer as the caller has seen it.
	Changed bool `json:"changed,omitempty"`
}

// kinds says of each type what its responses have in common.
var kinds = map[Type]struct {
	status int
	title  string
}{
	Malformed:       {http.StatusBadRequest, "The request cannot be read"},
	Invalid:         {http.StatusBadRequest, "A field has a value that cannot be"},
	Limit:           {http.StatusBadRequest, "A field exceeds its limit"},
	Slow:            {http.StatusRequestTimeout, "The request has not come in time"},
	TooLarge:        {http.StatusRequestEntityTooLarge, "The request is too large"},
	Unauthorized:    {http.StatusUnauthorized, "A token is asked for"},
	Forbidden:       {http.StatusForbidden, "This is not allowed"},
	NotFound:        {http.StatusNotFound, "There is no such thing"},
	Method:          {http.StatusMethodNotAllowed, "The route has no such method"},
	MediaType:       {http.StatusUnsupportedMediaType, "The body is no JSON"},
	State:           {http.StatusConflict, "The state of the task does not allow this"},
	Changed:         {http.StatusPreconditionFailed, "It has changed since it was seen"},
	OtherCount:      {http.StatusConflict, "Another number of tasks matches"},
	NotKept:         {http.StatusGone, "It is not kept any more"},
	KeyReused:       {http.StatusUnprocessableEntity, "The key stands for another request"},
	UnknownBehavior: {http.StatusUnprocessableEntity, "No live node has the behavior"},
	TooMany:         {http.StatusTooManyRequests, "Too many requests"},
	Overloaded:      {http.StatusServiceUnavailable, "The cluster is overloaded"},
	Unavailable:     {http.StatusServiceUnavailable, "The cluster is not available"},
	OutcomeUnknown: {
		http.StatusServiceUnavailable,
		"The outcome is unknown: repeat the request with the same id or key",
	},
	NoneSubmitted: {http.StatusConflict, "None is submitted"},
	Timeout:       {http.StatusGatewayTimeout, "There was no answer in time"},
	Internal:      {http.StatusInternalServerError, "Something is wrong on the server"},
}

// Types returns all types.
func Types() []Type {
	all := make([]Type, 0, len(kinds))
	for t := range kinds {
		all = append(all, t)
	}
	return all
}

// MarshalText returns the URI of the type.
func (t Type) MarshalText() ([]byte, error) { return []byte(Prefix + string(t)), nil }

// UnmarshalText implements encoding.TextUnmarshaler; of a type of a later release it keeps the name.
func (t *Type) UnmarshalText(text []byte) error {
	if len(text) < len(Prefix) || string(text[:len(Prefix)]) != Prefix {
		return fmt.Errorf("problem type %.80q: want %s and a name", text, Prefix)
	}
	*t = Type(text[len(Prefix):])
	return nil
}

// New returns a problem of a type, with a detail as Sprintf makes it.
func New(t Type, format string, args ...any) *Problem {
	return &Problem{
		Type:   t,
		Title:  kinds[t].title,
		Status: kinds[t].status,
		Detail: fmt.Sprintf(format, args...),
	}
}

// Error returns the detail, or the title.
func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}

// retryUnavailable is the delay before a repetition where the error does not state one.
const retryUnavailable = time.Second

// row converts an error of the engine to its problem and back: of returns nil for other errors, and back is nil where
// Err returns the problem itself.
type row struct {
	is   Type
	of   func(err error) *Problem
	back func(p *Problem) error
}

// table holds the errors of the engine, those that wrap others first.
var table = []row{
	{Unavailable, func(err error) *Problem { return detailOf(err, task.ErrClosed) }, nil},
	sentinel(OutcomeUnknown, task.ErrUnknown),
	sentinel(NoneSubmitted, task.ErrNoneSubmitted),
	sentinel(KeyReused, task.ErrOtherRequest),
	{State, func(err error) *Problem {
		e, ok := errors.AsType[*task.StateError](err)
		if !ok {
			return nil
		}
		return &Problem{Task: string(e.Task), Detail: e.Problem, Changed: e.Changed}
	}, func(p *Problem) error {
		return &task.StateError{Task: events.TaskID(p.Task), Problem: p.Detail, Changed: p.Changed}
	}},
	{TooLarge, func(err error) *Problem {
		e, ok := errors.AsType[*task.LimitError](err)
		if !ok || e.Field != "parameters" {
			return nil
		}
		return limit(e)
	}, limitError},
	{Limit, func(err error) *Problem {
		e, ok := errors.AsType[*task.LimitError](err)
		if !ok {
			return nil
		}
		return limit(e)
	}, limitError},
	{Invalid, func(err error) *Problem {
		e, ok := errors.AsType[*store.InvalidError](err)
		if !ok {
			return nil
		}
		return &Problem{Field: e.Field, Detail: e.Error()}
	}, func(p *Problem) error {
		return &store.InvalidError{Field: p.Field, Problem: strings.TrimPrefix(p.Detail, p.Field+": ")}
	}},
	{Overloaded, func(err error) *Problem {
		e, ok := errors.AsType[*task.OverloadError](err)
		if !ok {
			return nil
		}
		return &Problem{Detail: e.Cause, RetryAfter: seconds(e.RetryAfter)}
	}, func(p *Problem) error {
		return &task.OverloadError{Cause: p.Detail, RetryAfter: time.Duration(p.RetryAfter) * time.Second}
	}},
	sentinel(UnknownBehavior, task.ErrUnknownBehavior),
	sentinel(NotFound, task.ErrNotFound, schedule.ErrNotFound),
	sentinel(Changed, schedule.ErrChanged),
	sentinel(NotKept, task.ErrNotKept, store.ErrTrimmed),
	sentinel(Unavailable, store.ErrUnavailable),
	{Unavailable, func(err error) *Problem { // a caller that has gone, or a server that ends
		if !errors.Is(err, context.Canceled) {
			return nil
		}
		return &Problem{Detail: "the request has ended"}
	}, nil},
	sentinel(Timeout, context.DeadlineExceeded),
	{TooMany, func(error) *Problem { return nil }, func(p *Problem) error { // only a server says so
		return &task.OverloadError{Cause: p.Detail, RetryAfter: time.Duration(p.RetryAfter) * time.Second}
	}},
}

// Of returns the problem of an error. An error that is not one of the engine's becomes Internal, without its text,
// which callers must not learn.
func Of(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	for _, r := range table {
		if p := r.of(err); p != nil {
			p.Type, p.Title, p.Status = r.is, kinds[r.is].title, kinds[r.is].status
			if p.Status == http.StatusServiceUnavailable && p.RetryAfter == 0 {
				p.RetryAfter = seconds(retryUnavailable)
			}
			return p
		}
	}
	return New(Internal, "")
}

// Err returns the error that the problem was made of, as far as the problem shows it; p itself where the engine has no
// such error.
func (p *Problem) Err() error {
	for _, r := range table {
		if r.is == p.Type && r.back != nil {
			return r.back(p)
		}
	}
	return p
}

// Write answers a request with the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", ContentType)
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // it fails when the client has gone
}

// reported is an error of the engine with the text of a server.
type reported struct {
	*Problem
	is []error
}

// Unwrap returns the errors of the engine that it may be.
func (r reported) Unwrap() []error { return append([]error{r.Problem}, r.is...) }

// sentinel returns the row of errors that have no content but their text. What Err returns is each of them: the problem
// does not tell which one it was made of.
func sentinel(is Type, oneOf ...error) row {
	return row{
		is:   is,
		of:   func(err error) *Problem { return detailOf(err, oneOf...) },
		back: func(p *Problem) error { return reported{p, oneOf} },
	}
}

// detailOf returns a problem with the text of an error that is one of some; nil for another error.
func detailOf(err error, oneOf ...error) *Problem {
	for _, is := range oneOf {
		if errors.Is(err, is) {
			return &Problem{Detail: err.Error()}
		}
	}
	return nil
}

func limit(e *task.LimitError) *Problem {
	return &Problem{
		Field:  e.Field,
		Limit:  &e.Limit,
		Got:    &e.Got,
		Detail: e.Error(),
	}
}

func limitError(p *Problem) error {
	if p.Field == "" || p.Limit == nil || p.Got == nil {
		return p
	}
	return &task.LimitError{Field: p.Field, Limit: *p.Limit, Got: *p.Got}
}

// seconds rounds a duration up to whole seconds: the header takes no parts of one.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
