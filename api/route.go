package api

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"taskledger/api/token"
)

// Route is one method of one pattern.
type Route struct {
	Method  string
	Pattern string // as net/http has them, without a method or a host
	// Role is the least that may use it; Nobody = everybody, without a token.
	Role  token.Role
	Scope Scope
	Class Class
	// MaxBody is the largest body, in bytes; 0 = it takes none.
	MaxBody int64
	// Optional says that the body may be left out.
	Optional bool
	// Untyped says that a body without the header Content-Type is taken for JSON: old clients send none.
	Untyped bool
	// Large says that its answers may have megabytes: a few are made at once, and the others wait, unless they ask
	// for little. A page takes its place by Call.Making alone, once it has what it asks other routes for.
	Large bool
	// Summary describes the route in one line, for the OpenAPI document.
	Summary string
	Query   []Param
	// Form lists the fields of a body that is a form of HTML, application/x-www-form-urlencoded; nil = it takes none.
	Form []Param
	// Many names the parameters and fields that may be there more than once.
	Many []string
	// Page holds the headers of an answer for browsers, which the OpenAPI document leaves out; nil = it is for programs.
	Page *PagePolicy
	// Keyed says that it takes the header Idempotency-Key.
	Keyed bool
	// Aged says that it takes the header Idempotency-Age, too.
	Aged bool
	// Counted says that it takes the header Idempotency-Within beside that.
	Counted bool
	// Matched says that it takes the header If-Match.
	Matched bool
	// In and Out are values of the types of the body and of what it answers; nil = none, or no JSON.
	In, Out any
	// Status lists the status codes of its answers, the usual one first. Default 200.
	Status []int
	// Type names the media type of its answers. Default application/json.
	Type  string
	Serve func(c *Call) error

	name string // its method and pattern
}

// Param is a parameter of a query.
type Param struct {
	Name, Does string
	Is         Value
	Among      []string // it is one of these; none = of any value
	// Least and Most bound a whole number; Most = 0: nothing does. Handlers enforce both.
	Least, Most int64
	Default     any  // stands for a parameter that is not there; nil = nothing does
	Required    bool // the handler refuses a request without it
}

// Value names the type of a parameter, for the OpenAPI document.
type Value uint8

// The values that parameters have.
const (
	Text    Value = iota
	Integer       // a whole number
	Boolean       // true or false
	Instant       // a time in RFC 3339
	Period        // a length of time, such as 30s
	Kinds         // kinds of events, with commas
)

// Scope says which tasks a route shows, or changes.
type Scope uint8

// The scopes.
const (
	// None concerns no task.
	None Scope = iota
	// OneTask concerns the task that {id} names: one that the token is not for is not found.
	OneTask
	// ItsTasks concerns many tasks: the handler leaves out those that the token is not for.
	ItsTasks
	// Everything concerns the cluster: a token that is for some tasks alone is refused.
	Everything
	// OneStore concerns the task store that {name} names: a token that is not for it is refused.
	OneStore
	// OneSchedule concerns the schedule that {name} names: one that the prefix of the token leaves out is not found. The
	// handler judges its behavior.
	OneSchedule
)

func (r *Route) check() error {
	switch {
	case r.Serve == nil || r.Summary == "" || !strings.HasPrefix(r.Pattern, "/"):
		return fmt.Errorf("want a handler, a summary and a pattern that begins with a slash")
	case r.Scope == OneTask != strings.Contains(r.Pattern, "{id}"):
		return fmt.Errorf("want {id} in the pattern where its scope is one task, and nowhere else")
	case r.Role == token.Nobody && r.Scope != None:
		return fmt.Errorf("tells everybody of tasks")
	case r.Role == token.Nobody && r.Large:
		return fmt.Errorf("makes large answers for everybody")
	case (r.Scope == OneStore || r.Scope == OneSchedule) && !strings.Contains(r.Pattern, "{name}"):
		return fmt.Errorf("want {name} in the pattern where its scope is one store or schedule")
	case (r.In != nil || r.Form != nil) != (r.MaxBody > 0):
		return fmt.Errorf("want the type of a body and its size, or neither")
	case r.In != nil && r.Form != nil:
		return fmt.Errorf("want a body of JSON or a form, not both")
	}
	r.name = r.Method + " " + r.Pattern
	if len(r.Status) == 0 {
		r.Status = []int{http.StatusOK}
	}
	r.Type = cmp.Or(r.Type, "application/json")
	return nil
}
