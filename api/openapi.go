package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/view"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
)

// textTypes are JSON strings, whatever their Go types are.
var textTypes = []any{
	events.TaskID(""),
	events.Position{},
	events.Hash{},
	events.Kind(0),
	task.Status(0),
	task.Substatus(0),
	problem.Type(""),
}

// document returns the OpenAPI document of a table.
func document(table []*Route, version string, refusals *refusals) ([]byte, error) {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	for _, text := range textTypes {
		schemas.RegisterTypeAlias(reflect.TypeOf(text), reflect.TypeFor[string]())
	}
	schemas.RegisterTypeAlias(reflect.TypeFor[events.Millis](), reflect.TypeFor[time.Time]())
	schemas.RegisterTypeAlias(reflect.TypeFor[schedule.Definition](), reflect.TypeFor[schedule.Form]())
	ofProblem := schemas.Schema(reflect.TypeFor[problem.Problem](), true, "Problem")
	failure := response("What is wrong", problem.ContentType, ofProblem)
	paths := map[string]*huma.PathItem{}
	for _, r := range table {
		// One of a pattern that ends so answers as another route does, or refuses.
		if r.Page != nil || strings.HasSuffix(r.Pattern, "/{$}") {
			continue
		}
		failed := failure
		if d := refusals.formatOf(r.Pattern); d != nil {
			failed = response(failure.Description, d.Type, schemas.Schema(reflect.TypeOf(d.Out), true, ""))
		}
		at := strings.ReplaceAll(r.Pattern, "...}", "}")
		if paths[at] == nil {
			paths[at] = &huma.PathItem{}
		}
		op := operation(r, schemas, failed)
		switch r.Method {
		case http.MethodGet:
			paths[at].Get = op
		case http.MethodPost:
			paths[at].Post = op
		case http.MethodPut:
			paths[at].Put = op
		case http.MethodDelete:
			paths[at].Delete = op
		}
	}
	for name, schema := range schemas.Map() {
		nullFields(schema, schemas.TypeFromRef("#/components/schemas/"+name))
	}
	return json.Marshal(&huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "taskledger",
			Version: version,
			Description: "Submit tasks, wait for them, look at them and change them. " +
				"Errors are problem details (RFC 9457) of these types: " + typesOfProblems() + ".",
			Contact: &huma.Contact{Name: "taskledger"},
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "the node that this document comes from"}},
		Tags:    tags(paths),
		Paths:   paths,
		Components: &huma.Components{
			Schemas: schemas,
			// A token may be a password, too. The document does not say so: generated clients would send both.
			SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}},
		},
	})
}

// operation documents a route, whose errors are those of failed.
func operation(r *Route, schemas huma.Registry, failed *huma.Response) *huma.Operation {
	op := &huma.Operation{
		OperationID: operationID(r),
		Summary:     r.Summary,
		Parameters:  parameters(r),
		Responses:   map[string]*huma.Response{"default": failed},
		Security:    []map[string][]string{},
		Tags:        []string{tag(r)},
		Description: "Role: none",
	}
	if r.Role != token.Nobody {
		op.Security = append(op.Security, map[string][]string{"token": {}})
		op.Description = "Role: " + r.Role.String()
	}
	if r.In != nil {
		op.RequestBody = &huma.RequestBody{
			Required: !r.Optional,
			Content:  content(mediaJSON, schemas.Schema(reflect.TypeOf(r.In), true, "")),
		}
	}
	for _, status := range r.Status {
		answer := &huma.Response{Description: http.StatusText(status), Headers: headers(r.Out)}
		if r.Out != nil && status != http.StatusNotModified && status != http.StatusNoContent {
			answer.Content = content(r.Type, answered(schemas, r.Out))
		}
		op.Responses[strconv.Itoa(status)] = answer
	}
	return op
}

// tag returns the word by which documents group a route: what it is about.
func tag(r *Route) string {
	words := strings.FieldsFunc(strings.TrimPrefix(r.Pattern, "/v1"), func(c rune) bool {
		return strings.ContainsRune("/:.", c)
	})
	return words[0]
}

// tags returns all tags of operations, in order.
func tags(paths map[string]*huma.PathItem) (all []*huma.Tag) {
	has := map[string]bool{}
	for _, p := range paths {
		for _, op := range []*huma.Operation{p.Get, p.Post, p.Put, p.Delete} {
			if op != nil {
				has[op.Tags[0]] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		all = append(all, &huma.Tag{Name: name, Description: "Routes of " + name})
	}
	return all
}

// answerHeaders has the headers that answers of a type may have, beside their media type.
var answerHeaders = map[reflect.Type]map[string]string{
	reflect.TypeFor[Submitted](): {
		"Location":    "path of the task",
		"Retry-After": "seconds after which there may be an outcome",
	},
	reflect.TypeFor[task.Task](): {
		"ETag":        "the version of the task, for If-Match and If-None-Match",
		"Retry-After": "seconds after which there may be an outcome",
	},
	reflect.TypeFor[schedule.Schedule](): {
		"ETag": "the version of the schedule, for If-Match",
	},
}

// headers documents the headers of an answer of a type.
func headers(out any) map[string]*huma.Param {
	all := map[string]*huma.Param{}
	for name, does := range answerHeaders[reflect.TypeOf(out)] {
		all[name] = &huma.Param{Description: does, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return all
}

func response(description, media string, schema *huma.Schema) *huma.Response {
	return &huma.Response{Description: description, Content: content(media, schema)}
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

// nullFields documents that the pointers among the fields of a type may be null.
func nullFields(schema *huma.Schema, t reflect.Type) {
	if t == nil || t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if is := schema.Properties[name]; is != nil && !is.Nullable && f.Type.Kind() == reflect.Pointer && options == "" {
			schema.Properties[name] = orNull(is)
		}
	}
}

func orNull(schema *huma.Schema) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{schema, {Type: "null"}}}
}

// typesOfProblems lists all types of problems, in their order, each with its status.
func typesOfProblems() string {
	all := problem.Types()
	slices.Sort(all)
	texts := make([]string, len(all))
	for i, is := range all {
		texts[i] = fmt.Sprintf("%s%s (%d)", problem.Prefix, is, problem.New(is, "").Status)
	}
	return strings.Join(texts, ", ")
}

func parameters(r *Route) (all []*huma.Param) {
	for part := range strings.SplitSeq(r.Pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			p := &huma.Param{
				Name:     strings.TrimRight(name, ".}"),
				In:       "path",
				Required: true,
				Schema:   &huma.Schema{Type: huma.TypeString},
			}
			if p.Name == "id" {
				p.Description = "the id of the task, with ~ or %2F for its slash"
			}
			all = append(all, p)
		}
	}
	for _, q := range r.Query {
		p := parameter(q.Name, "query", q.Does)
		p.Schema = q.schema()
		all = append(all, p)
	}
	if r.Keyed {
		all = append(all, parameter(keyHeader, "header", "makes a repetition of the request the same request: "+
			"up to 239 bytes, 221 for a task store, drawn by the caller"))
	}
	if r.Aged {
		all = append(all, parameter(ageHeader, "header", "of a repetition: how many milliseconds ago "+
			"the request was sent first; one that may be forgotten by then is refused with 410"))
	}
	if r.Counted {
		all = append(all, parameter(withinHeader, "header", "of a repetition with an age: "+
			"the most requests of the client that were carried out since then, "+
			"this one and those under way with it among them; one within the last 64 is not refused for the others"))
	}
	if r.Matched {
		all = append(all, parameter(matchHeader, "header", "the version that was seen, "+
			"as an ETag or the member version of a task tells it, in quotes: another one is refused with 412"))
	}
	return all
}

// schema returns what values a parameter has.
func (p *Param) schema() *huma.Schema {
	is := &huma.Schema{Type: huma.TypeString}
	switch p.Is {
	case Integer:
		is.Type = huma.TypeInteger
	case Boolean:
		is.Type = huma.TypeBoolean
	case Instant:
		is.Format = "date-time"
	}
	for _, one := range p.Among {
		is.Enum = append(is.Enum, one)
	}
	return is
}

func parameter(name, in, description string) *huma.Param {
	return &huma.Param{
		Name:        name,
		In:          in,
		Description: description,
		Schema:      &huma.Schema{Type: huma.TypeString},
	}
}

// operationID joins the method and the words of the pattern: generated clients name their functions by it.
func operationID(r *Route) string {
	separates := func(c rune) bool { return strings.ContainsRune("/{}:.", c) }
	words := strings.FieldsFunc(strings.TrimPrefix(r.Pattern, "/v1/"), separates)
	return strings.ToLower(r.Method) + "-" + strings.Join(words, "-")
}

// schemaName returns the name of a type. It tells types of one name apart by their package.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[events.Error]():
		return "TaskError"
	case reflect.TypeFor[view.Error](): // many languages have an Error of their own
		return "OutcomeError"
	}
	switch of := path.Base(t.PkgPath()); {
	case of == "form": // of a task store
		return "Store" + name
	case of == "sync", of == "taskjson":
		return "Sync" + name
	case of == "logs":
		return "Log" + name
	case of == "works", of == "progress" && name != "Work":
		return "Work" + name
	case of == "schedules", of == "schedule" && name != "Schedule":
		return "Schedule" + name
	}
	return name
}
