package api

import (
	"encoding/json"
	"fmt"
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
	"taskledger/projection"
	"taskledger/projection/name"
)

// document makes the OpenAPI document of the table.
func (a *API) document() ([]byte, error) {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	for _, text := range []any{events.TaskID(""), events.Position{}, events.Hash{}, events.Kind(0), projection.Status(0), projection.Substatus(0), name.Name{}, problem.Type("")} {
		schemas.RegisterTypeAlias(reflect.TypeOf(text), reflect.TypeFor[string]())
	}
	schemas.RegisterTypeAlias(reflect.TypeFor[events.Millis](), reflect.TypeFor[time.Time]())
	doc := &huma.OpenAPI{OpenAPI: "3.1.0", Info: &huma.Info{Title: "taskledger", Version: a.version,
		Description: "Submit tasks, wait for them, look at them and change them. Errors are problem details (RFC 9457) of these types: " + typesOfProblems() + "."},
		Paths: map[string]*huma.PathItem{}, Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
			"token": {Type: "http", Scheme: "bearer"}}}} // not that a token may be a password, too: generated clients would send both
	failure := &huma.Response{Description: "What is wrong", Content: map[string]*huma.MediaType{
		problem.ContentType: {Schema: schemas.Schema(reflect.TypeFor[problem.Problem](), true, "Problem")}}}
	for _, r := range a.table {
		if strings.HasSuffix(r.Pattern, "/{$}") { // what it answers is that of another one, or what is wrong
			continue
		}
		failed := failure
		if d := a.dialectOf(r.Pattern); d != nil {
			failed = &huma.Response{Description: failure.Description, Content: map[string]*huma.MediaType{d.Type: {Schema: schemas.Schema(reflect.TypeOf(d.Out), true, "")}}}
		}
		op := &huma.Operation{OperationID: operationID(r), Summary: r.Summary, Responses: map[string]*huma.Response{"default": failed}}
		if r.Role != token.Nobody {
			op.Security = []map[string][]string{{"token": {}}}
			op.Description = "Role: " + r.Role.String()
		} else {
			op.Security = []map[string][]string{}
		}
		op.Parameters = parameters(r)
		if r.In != nil {
			op.RequestBody = &huma.RequestBody{Required: r.In != Reason{}, Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeOf(r.In), true, "")}}}
		}
		for _, status := range r.Status {
			answer := &huma.Response{Description: http.StatusText(status)}
			if r.Out != nil && status != http.StatusNotModified && status != http.StatusNoContent {
				answer.Content = map[string]*huma.MediaType{r.Type: {Schema: answered(schemas, r.Out)}}
			}
			op.Responses[strconv.Itoa(status)] = answer
		}
		at := strings.ReplaceAll(r.Pattern, "...}", "}")
		item := doc.Paths[at]
		if item == nil {
			item = &huma.PathItem{}
			doc.Paths[at] = item
		}
		switch r.Method {
		case http.MethodGet:
			item.Get = op
		case http.MethodPost:
			item.Post = op
		case http.MethodDelete:
			item.Delete = op
		}
	}
	for name, schema := range schemas.Map() {
		nullFields(schema, schemas.TypeFromRef("#/components/schemas/"+name))
	}
	return json.Marshal(doc)
}

// either is an answer, or a line of one, that is of any of some types.
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

// nullFields says of the fields of a type that are null where there is nothing that they may be.
func nullFields(schema *huma.Schema, t reflect.Type) {
	if t == nil || t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if is := schema.Properties[name]; is != nil && f.Type.Kind() == reflect.Pointer && options == "" {
			schema.Properties[name] = orNull(is)
		}
	}
}

func orNull(schema *huma.Schema) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{schema, {Type: "null"}}}
}

// typesOfProblems are all of them, in their order, each with its status.
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
	text := &huma.Schema{Type: huma.TypeString}
	for part := range strings.SplitSeq(r.Pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			p := &huma.Param{Name: strings.TrimRight(name, ".}"), In: "path", Required: true, Schema: text}
			if p.Name == "id" {
				p.Description = "the id of the task, with ~ or %2F for its slash"
			}
			all = append(all, p)
		}
	}
	for _, q := range r.Query {
		all = append(all, &huma.Param{Name: q.Name, In: "query", Description: q.Does, Schema: text})
	}
	if r.Keyed {
		all = append(all, &huma.Param{Name: keyHeader, In: "header", Schema: text,
			Description: "makes a repetition of the request the same request: up to 239 bytes, 221 for a task store, drawn by the caller"})
	}
	if r.Aged {
		all = append(all, &huma.Param{Name: ageHeader, In: "header", Schema: text,
			Description: "of a repetition: how many milliseconds ago the request was sent first; one that may be forgotten by then is refused with 410"})
	}
	if r.Counted {
		all = append(all, &huma.Param{Name: withinHeader, In: "header", Schema: text,
			Description: "of a repetition with an age: the most requests of the client that were carried out since then, " +
				"this one and those under way with it among them; one within the last 64 is not refused for the others"})
	}
	return all
}

// operationID is the method and the words of the pattern: generated clients name their functions by it.
func operationID(r *Route) string {
	words := strings.FieldsFunc(strings.TrimPrefix(r.Pattern, "/v1/"), func(c rune) bool { return strings.ContainsRune("/{}:.", c) })
	return strings.ToLower(r.Method) + "-" + strings.Join(words, "-")
}

// schemaName is the name of a type with that of its package where two packages have one of that name.
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
	if path.Base(t.PkgPath()) == "form" { // of a task store
		return "Store" + name
	}
	return name
}
