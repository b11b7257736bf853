package api_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/logs"
	"taskledger/api/operations"
	"taskledger/api/schedules"
	"taskledger/api/stores"
	syncapi "taskledger/api/sync"
	"taskledger/api/works"
)

// document holds the parts of the OpenAPI document that tests read.
type document struct {
	Paths      map[string]map[string]*operation
	Components struct {
		Schemas         map[string]*schema
		Responses       map[string]*response
		SecuritySchemes map[string]struct{ Description string }
	}
	Tags []struct{ Name, Description string }
}

type operation struct {
	OperationID, Summary, Description string
	Parameters                        []*parameter
	RequestBody                       *struct {
		Description string
		Content     map[string]struct{ Schema *schema }
	}
	Responses map[string]*response
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                *schema
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Headers     map[string]*parameter
	Content     map[string]struct{ Schema *schema }
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Description          string
	Format               string
	Properties           map[string]*schema
	Items, ContentSchema *schema
	OneOf                []*schema
	AdditionalProperties any
	Enum                 []any
	Grows                []any `json:"x-extensible-enum"`
	Minimum, Maximum     *float64
	Default              any
}

// documented serves every front of a node, and returns its document.
func documented(t *testing.T) (*server, *document) {
	t.Helper()
	s, _ := serve(t, func(c *api.Config) {
		all := c.Client.(operations.Direct)
		c.Routes = slices.Concat(
			stores.Routes(all.Stores()),
			schedules.Routes(all.Schedules(), all.Backfills()),
			logs.Routes(all),
			works.Routes(all.Works()),
			syncapi.Routes(all, all.Schedules()),
		)
		c.ErrorFormats = []api.ErrorFormat{stores.ErrorFormat(), syncapi.ErrorFormat()}
	})
	d := new(document)
	if err := json.Unmarshal([]byte(s.want(s.send("viewer", "GET", "/openapi.json", nil), 200, "").text), d); err != nil {
		t.Fatal(err)
	}
	return s, d
}

// each calls do with every operation, and with what names it.
func (d *document) each(do func(name string, op *operation)) {
	for path, methods := range d.Paths {
		for method, op := range methods {
			do(strings.ToUpper(method)+" "+path, op)
		}
	}
}

// within calls do with a schema and all that it refers to, once each; name is "" but for a component.
func (d *document) within(s *schema, seen map[string]bool, do func(name string, s *schema)) {
	if s == nil {
		return
	}
	name := strings.TrimPrefix(s.Ref, "#/components/schemas/")
	if name != "" {
		if seen[name] {
			return
		}
		seen[name] = true
		s = d.Components.Schemas[name]
	}
	do(name, s)
	parts := append(slices.Collect(maps.Values(s.Properties)), s.Items, s.ContentSchema)
	for _, part := range append(parts, s.OneOf...) {
		d.within(part, seen, do)
	}
}

func texts[T any](values ...T) (all []string) {
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// same compares the values of an enum with those that the engine has, in any order.
func same(t *testing.T, at string, got []any, want []string) {
	t.Helper()
	if is := texts(got...); !slices.Equal(slices.Sorted(slices.Values(is)), slices.Sorted(slices.Values(want))) {
		t.Errorf("%s has the values %v, want %v", at, is, want)
	}
}

// constants returns the constants of a type that a folder of the module declares: their texts, or their names.
func constants(t *testing.T, dir, of string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			group, is := decl.(*ast.GenDecl)
			if !is || group.Tok != token.CONST {
				continue
			}
			typ := ""
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				if value.Type != nil {
					typ = fmt.Sprint(value.Type)
				} else if len(value.Values) > 0 {
					typ = ""
				}
				if typ != of || !ast.IsExported(value.Names[0].Name) {
					continue
				}
				text := value.Names[0].Name
				if len(value.Values) == 1 {
					if literal, is := value.Values[0].(*ast.BasicLit); is && literal.Kind == token.STRING {
						text = strings.Trim(literal.Value, `"`)
					}
				}
				all = append(all, text)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no constants of %s", dir, of)
	}
	return all
}
