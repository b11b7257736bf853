package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/stores"
	"taskledger/api/token"
)

// echo is the body of a route that is not of this package.
type echo struct {
	Text string `json:"text"`
}

// Fronts of other packages have their routes in the same table, so that roles, limits and documentation hold for them.
func TestRoutes_OfAFrontAreServedAndGuardedAsOurs(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) {
		c.Routes = []api.Route{{
			Method:  "POST",
			Pattern: "/store/{name}/echo",
			Summary: "Echo",
			Role:    token.Submitter,
			MaxBody: 64,
			Query:   []api.Param{{Name: "twice", Does: "true: twice"}},
			In:      echo{},
			Out:     echo{},
			Serve: func(c *api.Call) error {
				var e echo
				if err := c.Read(&e); err != nil {
					return err
				}
				if c.Param("twice") == "true" {
					e.Text += e.Text
				}
				if c.Context().Err() != nil {
					return c.Context().Err()
				}
				return c.JSON(http.StatusOK, echo{c.Token().Name + ": " + e.Text})
			},
		}}
	})
	s.want(s.send("submitter", "POST", "/store/a/echo?twice=true", `{"text":"x"}`), 200, `{"text":"sam: xx"}`)
	s.want(s.send("submitter", "POST", "/store/a/echo?thrice=true", `{"text":"x"}`), 400, "thrice")
	s.want(s.send("submitter", "POST", "/store/a/echo", `{"text":"`+strings.Repeat("x", 99)+`"}`), 413, "too-large")
	s.want(s.send("viewer", "POST", "/store/a/echo", `{"text":"x"}`), 403, "forbidden")
	s.want(s.send("", "POST", "/store/a/echo", `{"text":"x"}`), 401, "unauthorized")
	got := s.want(s.send("submitter", "GET", "/store/a/echo", nil), 405, "method")
	if got.header.Get("Allow") != "POST" {
		t.Errorf("%v", got.header)
	}
	s.want(s.send("viewer", "GET", "/openapi.json", nil), 200, `"/store/{name}/echo"`)
}

// Below a path of its own a front tells whatever is refused in its own way.
func TestRoutes_OfAFrontWithADialectRefuseInIt(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) {
		c.ErrorFormats = []api.ErrorFormat{{
			Path: "/store/",
			Type: "text/plain",
			Out:  "",
			Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Problem) {
				w.WriteHeader(p.Status)
				_, _ = io.WriteString(w, "in words: "+string(p.Type))
			},
		}}
		say := func(word, summary string, said func(*api.Call) string) api.Route {
			return api.Route{
				Method:  "GET",
				Pattern: "/store/{name}/say/" + word,
				Summary: summary,
				Role:    token.Viewer,
				Scope:   api.OneStore,
				Serve:   func(c *api.Call) error { return c.JSON(http.StatusOK, said(c)) },
			}
		}
		c.Routes = []api.Route{
			{
				Method:  "POST",
				Pattern: "/store/{name}/echo",
				Summary: "Echo",
				Role:    token.Submitter,
				Scope:   api.OneStore,
				MaxBody: 64,
				Untyped: true,
				In:      echo{},
				Serve: func(c *api.Call) error {
					text, err := c.Body()
					if err != nil {
						return err
					}
					return c.JSON(http.StatusOK, c.Path("name")+string(text))
				},
			},
			say("{word}", "Say", func(c *api.Call) string { return c.Path("word") }),
			say("{$}", "Say what net/http takes for the end of a path", (*api.Call).EscapedPath),
		}
	})
	s.want(s.send("submitter", "POST", "/store/a/echo", `x`), 200, `"ax"`)
	s.want(s.send("submitter", "POST", "/store/a/echo", `x`, "Content-Type", ""), 200, `"ax"`)
	for want, got := range map[string]answer{
		"media-type":   s.send("submitter", "POST", "/store/a/echo", `x`, "Content-Type", "text/html"),
		"too-large":    s.send("submitter", "POST", "/store/a/echo", strings.Repeat("x", 65)),
		"forbidden":    s.send("viewer", "POST", "/store/a/echo", `x`),
		"unauthorized": s.send("", "POST", "/store/a/echo", `x`),
		"method":       s.send("viewer", "GET", "/store/a/echo", nil),
		"not-found":    s.send("viewer", "GET", "/store/a/nothing", nil),
	} {
		if got.text != "in words: "+want {
			t.Errorf("%d %s, want %s", got.status, got.text, want)
		}
	}
	s.want(s.send("tenant", "POST", "/store/a/echo", `x`), 403, "in words: forbidden")
	for path, want := range map[string]string{
		"a%2Fb":    `"a/b"`,
		"a%2F%2Fb": `"a//b"`,
		"..%2F..":  `"../.."`,
		"%00":      `"\u0000"`,
		"%C3%A9":   `"é"`,
		"%25":      `"%"`,
		"+":        `"+"`,
	} {
		s.want(s.send("viewer", "GET", "/store/a/say/"+path, nil), 200, want)
	}
	s.want(s.send("viewer", "GET", "/store/a/say/%2F", nil), 200, `"/store/a/say/%2F"`)
	s.want(s.send("viewer", "GET", "/store/a/../b/say/x", nil), 404, "in words: not-found")
	s.want(s.send("viewer", "GET", "/v1/nothing", nil), 404, `"type":"urn`)
	document := s.want(s.send("viewer", "GET", "/openapi.json", nil), 200, `"text/plain":`)
	if strings.Contains(document.text, "$}") {
		t.Error("the document has a path that OpenAPI knows nothing of")
	}
}

func TestNew_RefusesRoutesThatLackSomething(t *testing.T) {
	serveIt := func(*api.Call) error { return nil }
	for want, r := range map[string]api.Route{
		"handler": {Method: "GET", Pattern: "/a", Summary: "A"},
		"summary": {Method: "GET", Pattern: "/a", Serve: serveIt},
		"slash":   {Method: "GET", Pattern: "a", Summary: "A", Serve: serveIt},
		"{id}":    {Method: "GET", Pattern: "/a/{id}", Summary: "A", Serve: serveIt},
		"{name}": {
			Method:  "GET",
			Pattern: "/a",
			Summary: "A",
			Role:    token.Viewer,
			Scope:   api.OneStore,
			Serve:   serveIt,
		},
		"schedule": {
			Method:  "GET",
			Pattern: "/a",
			Summary: "A",
			Role:    token.Viewer,
			Scope:   api.OneSchedule,
			Serve:   serveIt,
		},
		"everybody": {Method: "GET", Pattern: "/a", Summary: "A", Scope: api.ItsTasks, Serve: serveIt},
		"body":      {Method: "POST", Pattern: "/a", Summary: "A", In: echo{}, Serve: serveIt},
		"twice":     {Method: "GET", Pattern: "/v1/health", Summary: "A", Serve: serveIt},
	} {
		_, err := api.New(api.Config{Client: operations.Direct{}, Tokens: everybody, Routes: []api.Route{r}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What the document says of a route is what it does.
func TestOpenAPI_SaysThatATaskIsDeletedThatDoesNotRun(t *testing.T) {
	s, _ := serve(t, nil)
	s.submit("submitter", "runs", "gate")
	s.want(s.send("viewer", "GET", "/openapi.json", nil), 200, `"summary":"Delete a task that does not run"`)
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"noop","id":"waits","delay_ms":3600000}`), 202, "")
	s.want(s.send("operator", "DELETE", "/v1/tasks/waits", nil), 204, "")
	s.want(s.send("operator", "DELETE", "/v1/tasks/runs", nil), 409, "")
}

// A client is generated from the document: each operation has a name of its own, and whatever is referred to is there.
func TestOpenAPI_NamesEveryOperationOnceAndRefersToWhatIsThere(t *testing.T) {
	s, _ := serve(t, nil)
	text := s.want(s.send("viewer", "GET", "/openapi.json", nil), 200, `"openapi":"3.1.0"`).text
	var doc struct {
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, r := range s.api.Routes() {
		op, ok := doc.Paths[r.Pattern][strings.ToLower(r.Method)]
		if !ok || op.OperationID == "" || named[op.OperationID] {
			t.Errorf("%s %s: operation %q", r.Method, r.Pattern, op.OperationID)
		}
		named[op.OperationID] = true
	}
	for rest := text; ; {
		_, after, found := strings.Cut(rest, `"$ref":"#/components/schemas/`)
		if !found {
			break
		}
		name, _, _ := strings.Cut(after, `"`)
		if _, ok := doc.Components.Schemas[name]; !ok {
			t.Errorf("%s is referred to, and is not there", name)
		}
		rest = after
	}
}

// A client that is generated from the document reads every answer, and knows every type of problem.
func TestOpenAPI_SaysWhatAnswersAre(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) {
		c.Routes, c.ErrorFormats = stores.Routes(c.Client.Stores()), []api.ErrorFormat{stores.ErrorFormat()}
	})
	text := s.want(s.send("viewer", "GET", "/openapi.json", nil), 200, "").text
	for _, want := range []string{
		`"items":{"oneOf":[{"$ref":"#/components/schemas/StoreTask"},{"type":"null"}]}`,
		`"items":{"oneOf":[{"$ref":"#/components/schemas/OldTask"},{"type":"null"}]}`,
		`"error":{"description":"Tells which tasks were in the way; it is null where the request was done.",` +
			`"oneOf":[{"$ref":"#/components/schemas/OldError"},{"type":"null"}]}`,
		`"contentSchema":{"oneOf":[{"$ref":"#/components/schemas/Header"},{"$ref":"#/components/schemas/Line"}]}`,
		`"OutcomeError":`,
		`"TaskError":`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document has no %s", want)
		}
	}
	for _, not := range []string{`"Error":`, `"basic"`, `"password"`} {
		if strings.Contains(text, not) {
			t.Errorf("the document has %s", not)
		}
	}
	for _, is := range problem.Types() {
		if !strings.Contains(text, problem.Prefix+string(is)+" (") {
			t.Errorf("the document does not name %s", is)
		}
	}
	got := s.want(s.send("viewer", "GET", "/v1/shards", nil), 200, `"shard":`)
	if strings.Contains(got.text, `"time":""`) {
		t.Errorf("a time that is none: %s", got.text)
	}
}
