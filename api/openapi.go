package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"taskledger/api/problem"
	"taskledger/api/token"
)

// document returns the OpenAPI document of a table.
func document(table []*Route, version string, refusals *refusals) ([]byte, error) {
	schemas := newSchemas()
	var documented []*Route
	for _, r := range table {
		// One of a pattern that ends so answers as another route does, or refuses.
		if r.Page == nil && !strings.HasSuffix(r.Pattern, "/{$}") {
			documented = append(documented, r)
		}
	}
	// Requests have names of their own where answers have the type, too.
	failures := map[string]*huma.Response{}
	for _, r := range documented {
		if r.Out != nil {
			answered(schemas.answers, r.Out)
		}
		name, failed := failure(schemas.answers, refusals.formatOf(r.Pattern))
		failures[name] = failed
	}
	paths := map[string]*huma.PathItem{}
	for _, r := range documented {
		at := strings.ReplaceAll(r.Pattern, "...}", "}")
		if paths[at] == nil {
			paths[at] = &huma.PathItem{}
		}
		name, _ := failure(schemas.answers, refusals.formatOf(r.Pattern))
		op := operation(r, schemas, &huma.Response{Ref: "#/components/responses/" + name})
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
	return json.Marshal(&huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "taskledger",
			Version: version,
			Description: "Submit tasks, wait for them, look at them and change them. " +
				"Answers may have members, and values of x-extensible-enum, that this document does not name: " +
				"they are to be passed over. Requests with members that it does not name are refused. " +
				"Errors are problem details (RFC 9457) of these types: " + typesOfProblems() + ".",
			Contact: &huma.Contact{Name: "taskledger"},
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "Names the node that this document comes from."}},
		Tags:    tags(paths),
		Paths:   paths,
		Components: &huma.Components{
			Schemas:   schemas.all(),
			Responses: failures,
			// A token may be a password, too. The document does not say so: generated clients would send both.
			SecuritySchemes: map[string]*huma.SecurityScheme{"token": {
				Type:        "http",
				Scheme:      "bearer",
				Description: "Holds the secret of a token.",
			}},
		},
	})
}

// operation documents a route, whose problems are those of failed.
func operation(r *Route, schemas *schemas, failed *huma.Response) *huma.Operation {
	op := &huma.Operation{
		OperationID: operationID(r),
		Summary:     r.Summary,
		Parameters:  parameters(r),
		Responses:   map[string]*huma.Response{"4XX": failed, "5XX": failed},
		Security:    []map[string][]string{},
		Tags:        []string{tag(r)},
		Description: r.Summary + ". It asks for no token.",
	}
	if r.Role != token.Nobody {
		op.Security = append(op.Security, map[string][]string{"token": {}})
		op.Description = r.Summary + ". It asks for a token of the role " + r.Role.String() + " or of a higher one."
	}
	if r.In != nil {
		op.RequestBody = &huma.RequestBody{
			Description: "A body with members that are not named here is refused.",
			Required:    !r.Optional,
			Content:     content(mediaJSON, schemas.requests.Schema(reflect.TypeOf(r.In), true, "")),
		}
	}
	for _, status := range r.Status {
		op.Responses[strconv.Itoa(status)] = answer(r, status, schemas.answers)
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
		all = append(all, &huma.Tag{Name: name, Description: "Groups the routes of " + name + "."})
	}
	return all
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

// operationID joins the method and the words of the pattern: generated clients name their functions by it.
func operationID(r *Route) string {
	separates := func(c rune) bool { return strings.ContainsRune("/{}:.", c) }
	words := strings.FieldsFunc(strings.TrimPrefix(r.Pattern, "/v1/"), separates)
	return strings.ToLower(r.Method) + "-" + strings.Join(words, "-")
}
