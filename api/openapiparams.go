package api

import (
	"math"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"taskledger/events"
)

// pathParams describes what braces in patterns stand for. One of a route's scope has another meaning below.
var pathParams = map[string]string{
	"id":         "Names the task, with ~ or %2F for its slash.",
	"name":       "Names the task store.",
	"behavior":   "Names the behavior.",
	"group":      "Names the group.",
	"task":       "Names the task.",
	"tasks":      "Names the tasks, with commas between their ids, 1,000 at most.",
	"source":     "Names the source.",
	"collection": "Names the collection of the source.",
}

// parameters documents what a route takes in its path, its query and its headers.
func parameters(r *Route) (all []*huma.Param) {
	for part := range strings.SplitSeq(r.Pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimRight(name, ".}")
			p := parameter(name, "path", pathParams[name])
			if p.Required = true; r.Scope == OneSchedule {
				p.Description = "Names the schedule."
			}
			all = append(all, p)
		}
	}
	for _, q := range r.Query {
		all = append(all, q.documented())
	}
	if r.Keyed {
		all = append(all, parameter(keyHeader, "header", "Makes a repetition of the request the same request, "+
			"by up to 239 bytes, 221 for a task store, that the caller draws."))
	}
	if r.Aged {
		p := parameter(ageHeader, "header", "Counts, of a repetition, the milliseconds since the request was sent first; "+
			"one that may be forgotten by then is refused with 410.")
		p.Schema.Type, p.Schema.Format, p.Schema.Minimum = huma.TypeInteger, "int64", bound(0)
		all = append(all, p)
	}
	if r.Counted {
		p := parameter(withinHeader, "header", "Counts, of a repetition with an age, the most requests of the client "+
			"that were carried out since then, this one and those under way with it among them; "+
			"one within the last 64 is not refused for the others.")
		p.Schema.Type, p.Schema.Minimum, p.Schema.Maximum = huma.TypeInteger, bound(0), bound(math.MaxInt32)
		all = append(all, p)
	}
	if r.Matched {
		all = append(all, parameter(matchHeader, "header", "Names the version that was seen, "+
			"as an ETag or the member version of a task tells it, in quotes; another one is refused with 412."))
	}
	return all
}

// documented describes a parameter of a query, and which values it has.
func (p *Param) documented() *huma.Param {
	d := parameter(p.Name, "query", p.Does)
	is := d.Schema
	switch d.Required = p.Required; p.Is {
	case Integer:
		is.Type = huma.TypeInteger
		is.Format = "int64"
		is.Minimum = bound(p.Least)
		if p.Most > 0 {
			is.Maximum = bound(p.Most)
		}
	case Boolean:
		is.Type = huma.TypeBoolean
		if len(p.Among) > 0 { // the handler takes nothing but true
			is.Enum = []any{true}
			return d
		}
		is.Default = false
	case Instant:
		is.Format = "date-time"
	case Period:
		is.Pattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|ms|s|m|h))*$`
		is.Examples = []any{"30s"}
	case Kinds:
		is.Type = huma.TypeArray
		is.Items = &huma.Schema{Type: huma.TypeString, Enum: texts(events.Kinds())}
		d.Style, d.Explode = "form", new(bool)
	}
	if p.Default != nil {
		is.Default = p.Default
	}
	is.Enum = append(is.Enum, texts(p.Among)...)
	return d
}

func parameter(name, in, description string) *huma.Param {
	return &huma.Param{
		Name:        name,
		In:          in,
		Description: description,
		Schema:      &huma.Schema{Type: huma.TypeString},
	}
}
