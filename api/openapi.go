package api

import (
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"taskledger/api/problem"
	"taskledger/api/token"
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
		Description: "Submit tasks, wait for them, look at them and change them. Errors are problem details (RFC 9457)."},
		Paths: map[string]*huma.PathItem{}, Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
			"token": {Type: "http", Scheme: "bearer"}, "password": {Type: "http", Scheme: "basic", Description: "the token as password, any user"}}}}
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
			op.Security = []map[string][]string{{"token": {}}, {"password": {}}}
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
			if r.Out != nil && status != http.StatusNotModified {
				answer.Content = map[string]*huma.MediaType{r.Type: {Schema: schemas.Schema(reflect.TypeOf(r.Out), true, "")}}
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
	return json.Marshal(doc)
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
	if t == reflect.TypeFor[events.Error]() {
		return "TaskError"
	}
	if path.Base(t.PkgPath()) == "form" { // of a task store
		return "Store" + name
	}
	return name
}
