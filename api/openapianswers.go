package api

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"taskledger/api/problem"
)

// header is a header that answers of a type may have, beside their media type.
type header struct {
	name, does string
	is         string // its type
	of         []int  // the status codes of answers that have it; none = all
}

var retryAfter = header{
	name: "Retry-After",
	does: "Tells after how many seconds to ask again.",
	is:   huma.TypeInteger,
	of:   []int{http.StatusAccepted},
}

// answerHeaders has the headers of answers by the names of their schemas.
var answerHeaders = map[string][]header{
	"Submitted": {
		{name: "Location", does: "Holds the path of the task.", is: huma.TypeString},
		retryAfter,
	},
	"Task": {
		{name: "ETag", does: "Holds the version and the substatus of the task, for If-None-Match.", is: huma.TypeString},
		retryAfter,
	},
	"Schedule":    {{name: "ETag", does: "Holds the version of the schedule, for If-Match.", is: huma.TypeString}},
	"ScheduleSet": {{name: "ETag", does: "Holds the version of the schedule, for If-Match.", is: huma.TypeString}},
}

// problemHeaders has the headers of problems.
var problemHeaders = []header{
	{name: "Retry-After", does: "Tells, with 429 and 503, after how many seconds to ask again.", is: huma.TypeInteger},
	{name: "WWW-Authenticate", does: "Names, with 401, the schemes by which a token is shown.", is: huma.TypeString},
	{name: "Allow", does: "Lists, with 405, the methods that the route has.", is: huma.TypeString},
}

// statusTexts says what the status codes of answers that are no problems mean.
var statusTexts = map[int]string{
	http.StatusOK:                 "Answers what was asked for.",
	http.StatusCreated:            "Says that it was made.",
	http.StatusAccepted:           "Says that it was accepted, and goes on.",
	http.StatusNoContent:          "Says that it was done.",
	http.StatusNotModified:        "Says that it is as it was seen.",
	http.StatusServiceUnavailable: "Says that the node does not serve.",
}

// answer documents the answer of a route that has a status.
func answer(r *Route, status int, schemas huma.Registry) *huma.Response {
	is := &huma.Response{Description: statusTexts[status]}
	if r.Out != nil {
		is.Headers = headers(answerHeaders[schemaName(reflect.TypeOf(r.Out), "")], status)
	}
	switch {
	case status == http.StatusNotModified, status == http.StatusNoContent:
	case r.Type == lines: // clients read it as bytes
		schema := &huma.Schema{
			Type:        huma.TypeString,
			Format:      "binary",
			Description: "Holds a JSON value of the schema contentSchema in each line.",
			Extensions:  map[string]any{"contentSchema": answered(schemas, r.Out)},
		}
		is.Content = content(r.Type, schema)
	case r.Out != nil:
		is.Content = content(r.Type, answered(schemas, r.Out))
	case r.Type != mediaJSON:
		is.Content = content(r.Type, &huma.Schema{Type: huma.TypeString})
	}
	return is
}

// headers documents those of an answer that has a status; 0 = a problem of any.
func headers(all []header, status int) map[string]*huma.Param {
	documented := map[string]*huma.Param{}
	for _, h := range all {
		if status == 0 || len(h.of) == 0 || slices.Contains(h.of, status) {
			documented[h.name] = &huma.Param{Description: h.does, Schema: &huma.Schema{Type: h.is}}
		}
	}
	return documented
}

// failure documents what is wrong with a request, in an error format; nil = RFC 9457.
func failure(schemas huma.Registry, d *ErrorFormat) (name string, is *huma.Response) {
	media, of := problem.ContentType, reflect.TypeFor[problem.Problem]()
	if d != nil {
		media, of = d.Type, reflect.TypeOf(d.Out)
	}
	name = schemaName(of, "")
	return name, &huma.Response{
		Description: "Tells what is wrong with the request, or with the node.",
		Headers:     headers(problemHeaders, 0),
		Content:     content(media, schemas.Schema(of, true, name)),
	}
}

func content(media string, schema *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{media: {Schema: schema}}
}

// either is an answer, or a line of one, of any of some types.
type either []any

func answered(schemas huma.Registry, out any) *huma.Schema {
	if all, is := out.(either); is {
		one := &huma.Schema{}
		for _, v := range all {
			one.OneOf = append(one.OneOf, answered(schemas, v))
		}
		return one
	}
	t := reflect.TypeOf(out)
	schema := schemas.Schema(t, true, "")
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Pointer {
		schema.Items = orNull(schema.Items)
	}
	return schema
}
