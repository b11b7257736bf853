package works_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/api/works"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work/progress"
)

var everybody = apitest.Everybody(apitest.Secrets{
	"reindexer": {Name: "rita", Role: token.Operator, Behaviors: []string{"reindex"}},
})

// world has the work of a task, and takes down what is asked of it.
type world struct {
	asked []string
	fails error
}

const has = "t1.a/b"

func (w *world) ask(id events.TaskID, format string, args ...any) error {
	w.asked = append(w.asked, fmt.Sprintf(format, args...))
	if id != has {
		return fmt.Errorf("no work is planned: task %s: %w", id, task.ErrNotFound)
	}
	return w.fails
}

func (w *world) Work(_ context.Context, id events.TaskID) (is progress.Work, err error) {
	is = progress.Work{Task: id, Behavior: "reindex", Status: task.Running, Partitions: []progress.Partition{{
		ID:        "all",
		Mode:      "full",
		StartedAt: 1,
		Buckets:   progress.Buckets{Total: 200, Done: 25, Open: 3},
	}}}
	is.Derive(progress.Facts{Planned: true, Current: 1})
	return is, w.ask(id, "show")
}

func (w *world) WorkLinear(ctx context.Context, id events.TaskID) (progress.Work, error) {
	return w.Work(ctx, id)
}

func (w *world) WorkFailures(
	_ context.Context, id events.TaskID, cursor string, limit int,
) (progress.FailurePage, error) {
	page := progress.FailurePage{Task: id, Run: 1, FailedItems: 57, Cursor: "next", Buckets: []progress.Failures{{
		Partition: "all",
		Bucket:    7,
		Failed:    57,
		Errors:    []progress.ItemError{{Item: "row 9", Code: "boom", Message: "it bursts"}},
	}}}
	return page, w.ask(id, "errors %q %d", cursor, limit)
}

func (w *world) ResetWork(_ context.Context, id events.TaskID, how operations.WorkReset) error {
	if how.Token != nil {
		return w.ask(id, "token %q %q", *how.Token, how.Reason)
	}
	return w.ask(id, "reset %t", how.Thresholds)
}

func (w *world) RerunWork(_ context.Context, id events.TaskID) error { return w.ask(id, "rerun") }

type server struct {
	*world
	t   *testing.T
	api *api.API
}

func serve(t *testing.T) *server {
	t.Helper()
	w := &world{}
	a, err := api.New(api.Config{
		Client:  operations.Direct{},
		Tokens:  everybody,
		Version: "test",
		Routes:  works.Routes(w),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &server{world: w, t: t, api: a}
}

// send asks for the work of a task and wants an answer with a status and a part.
func (s *server) send(secret, method, path, body string, status int, part string) string {
	s.t.Helper()
	code, text := s.exchange(secret, method, path, body)
	if code != status || !strings.Contains(text, part) {
		s.t.Errorf("%s %s by %s: status %d, want %d and %q: %.600s", method, path, secret, code, status, part, text)
	}
	return text
}

func (s *server) exchange(secret, method, path, body string) (code int, text string) {
	w := apitest.Ask(s.api, secret, method, "/v1/tasks/"+path, body)
	return w.Code, w.Body.String()
}

// did fails unless this was asked since the last call.
func (s *server) did(want ...string) {
	s.t.Helper()
	if got := strings.Join(s.asked, "; "); got != strings.Join(want, "; ") {
		s.t.Errorf("asked %s, want %s", got, want)
	}
	s.asked = nil
}

func TestWork_IsToldInJSON(t *testing.T) {
	t.Parallel()
	s := serve(t)
	text := s.send("viewer", "GET", "t1.a~b/work", "", 200, `"progress":"12.5 % (25 of 200 buckets)"`)
	for _, part := range []string{
		`"state":"in-progress"`,
		`"wall_clock_ms":0`,
		`"buckets":{"total":200,"done":25,"open":3,"failed":0}`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	s.send("viewer", "GET", "nobody/work", "", 404, "no work is planned")
}

func TestErrors_ArePagedByTheirCursor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.send("viewer", "GET", "t1.a~b/work/errors?limit=5&cursor=abc", "", 200,
		`"failed_items":57,"failed_buckets":0,"buckets":[{"partition":"all","bucket":7`)
	s.send("viewer", "GET", "t1.a~b/work/errors", "", 200, `"cursor":"next"`)
	s.did(`errors "abc" 5`, `errors "" 20`)
	s.send("viewer", "GET", "t1.a~b/work/errors?limit=101", "", 400, `"field":"limit","limit":100,"got":101`)
	s.send("viewer", "GET", "t1.a~b/work/errors?limit=0", "", 400, `"field":"limit"`)
	s.did()
	s.fails = &store.InvalidError{Field: "cursor", Problem: "it is none of the errors of this run"}
	s.send("viewer", "GET", "t1.a~b/work/errors?cursor=x", "", 400, `"field":"cursor"`)
	s.fails = store.ErrTrimmed
	s.send("viewer", "GET", "t1.a~b/work/errors", "", 410, "not-kept")
}

func TestReset_ForgetsTheRunOrWhatItsCountersHaveCounted(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, body := range []string{"", "{}"} {
		s.send("operator", "POST", "t1.a~b/work/reset", body, 204, "")
		s.did("reset false")
	}
	s.send("operator", "POST", "t1.a~b/work/reset", `{"thresholds":true}`, 204, "")
	s.did("reset true")
	s.send("operator", "POST", "t1.a~b/work/reset", `{"threshold":true}`, 400, "malformed")
	for _, other := range []string{"false", "null", `"true"`, "1", "{}"} {
		text := s.send("operator", "POST", "t1.a~b/work/reset", `{"thresholds":`+other+`}`, 400, "a reset of the run has no body")
		if !strings.Contains(text, `"field":"thresholds"`) {
			t.Errorf("%s: no field in %s", other, text)
		}
	}
	s.did()
	s.send("operator", "POST", "nobody/work/reset", "", 404, "not-found")
}

func TestOpenAPI_TellsWhichBodiesMayBeLeftOut(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct{ Required bool }
		}
		Components struct {
			Schemas map[string]struct {
				Properties map[string]map[string]any
			}
		}
	}
	if err := json.Unmarshal(apitest.Ask(s.api, "viewer", "GET", "/openapi.json", "").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, required := range map[string]bool{
		"tasks/{id}/work/reset":      false,
		"tasks/{id}/work/rerun":      true,
		"tasks/{id}/suspend":         false,
		"behaviors/{behavior}/pause": false,
		"tasks":                      true,
	} {
		if is := doc.Paths["/v1/"+path]["post"].RequestBody.Required; is != required {
			t.Errorf("the body of %s is required: %t", path, is)
		}
	}
	for property, want := range map[string]string{"thresholds": "boolean", "token": "string"} {
		if of := doc.Components.Schemas["WorkReset"].Properties[property]["type"]; of != want {
			t.Errorf("%s of a reset is of the type %v", property, of)
		}
	}
}

func TestReset_SetsATokenThatIsGivenAlsoAnEmptyOne(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.send("operator", "POST", "t1.a~b/work/reset", `{"token":"t 7","reason":"restored"}`, 204, "")
	s.did(`token "t 7" "restored"`)
	s.send("operator", "POST", "t1.a~b/work/reset", `{"token":"","reason":"all again"}`, 204, "")
	s.did(`token "" "all again"`)
	for body, field := range map[string]string{
		`{"token":null}`:                   "token",
		`{"token":7}`:                      "token",
		`{"token":"t","thresholds":true}`:  "token",
		`{"reason":"t"}`:                   "reason",
		`{"reason":"t","thresholds":true}`: "reason",
	} {
		s.send("operator", "POST", "t1.a~b/work/reset", body, 400, `"field":"`+field+`"`)
	}
	s.did()
}

func TestRerun_IsOfFailedBucketsAlone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.send("operator", "POST", "t1.a~b/work/rerun", `{"failed":true}`, 204, "")
	s.did("rerun")
	for _, body := range []string{"", "{}", `{"failed":false}`} {
		s.send("operator", "POST", "t1.a~b/work/rerun", body, 400, `"field":"failed"`)
	}
	s.did()
}

func TestWork_WhatItsStateForbidsIsAConflictThatSaysWhy(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.fails = &task.StateError{Task: has, Problem: "cannot reset a work that runs: 3 buckets are open"}
	s.send("operator", "POST", "t1.a~b/work/reset", "", 409, "3 buckets are open")
	s.fails = &task.StateError{Task: has, Problem: "no bucket had failed items"}
	s.send("operator", "POST", "t1.a~b/work/rerun", `{"failed":true}`, 409, "no bucket had failed items")
}

// routes are named by method and by what follows the work in the pattern.
var routes = map[string]struct {
	changes bool
	body    string
}{
	"GET ":        {false, ""},
	"GET /errors": {false, ""},
	"POST /reset": {true, ""},
	"POST /rerun": {true, `{"failed":true}`},
}

func TestAuthorization_IsThatOfAnyOtherOperation(t *testing.T) {
	t.Parallel()
	s := serve(t)
	known := map[string]bool{}
	for _, r := range s.api.Routes() {
		if _, path, is := strings.Cut(r.Pattern, "{id}/work"); is {
			known[r.Method+" "+path] = true
		}
	}
	for name, row := range routes {
		if !known[name] {
			t.Errorf("%s is no route", name)
		}
		delete(known, name)
		method, path, _ := strings.Cut(name, " ")
		done, read := 200, 200
		if row.changes {
			done, read = 204, 403
		}
		for secret, want := range map[string]int{
			"unknown":   401,
			"worker":    403,
			"viewer":    read,
			"submitter": read,
			"operator":  done,
			"tenant":    done,
			"reindexer": done,
			"sleeper":   404,
		} {
			s.asked = nil
			s.send(secret, method, "t1.a~b/work"+path, row.body, want, "")
			if want != 200 && want != 204 && len(s.asked) > 0 && s.asked[0] != "show" {
				t.Errorf("%s by %s: asked %s", name, secret, s.asked)
			}
		}
		s.send("tenant", method, "t2.a~b/work"+path, row.body, 404, "")
	}
	for name := range known {
		t.Errorf("%s has no row", name)
	}
}

func TestOpenAPI_NamesTheStatesAndModes(t *testing.T) {
	t.Parallel()
	s := serve(t)
	w := apitest.Ask(s.api, "viewer", "GET", "/openapi.json", "")
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Type any   `json:"type"`
					Enum []any `json:"enum"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %.300s", err, w.Body)
	}
	for schema, want := range map[string]map[string]string{
		"Work": {
			"state":  "not-started in-progress suspended failed complete",
			"status": "CREATED RUNNING SUCCESS FAILURE",
		},
		"WorkPartition": {
			"state": "not-started in-progress suspended failed complete",
			"mode":  "full simulate dry-run",
		},
		"WorkThreshold": {"mode": "full simulate dry-run"},
	} {
		for field, words := range want {
			is := doc.Components.Schemas[schema].Properties[field]
			if got := strings.Trim(fmt.Sprint(is.Enum), "[]"); got != words || is.Type != "string" {
				t.Errorf("%s of %s: %+v, want %s", field, schema, is, words)
			}
		}
	}
}
