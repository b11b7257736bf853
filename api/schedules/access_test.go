package schedules_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"taskledger/api/token"
)

// matrix says of every route who may use it, and with what body it is asked.
var matrix = map[string]struct {
	role token.Role
	body string
}{
	"GET":              {token.Viewer, ""},
	"GET /{name}":      {token.Viewer, ""},
	"GET /{name}/next": {token.Viewer, ""},
	"PUT /{name}":      {token.Submitter, never("noop")},
	"DELETE /{name}":   {token.Operator, ""},

	"POST /{name}/run":    {token.Submitter, ""},
	"POST /{name}/pause":  {token.Operator, `{"reason":"why"}`},
	"POST /{name}/resume": {token.Submitter, ""},
	"POST /{name}/backfill": {token.Submitter,
		`{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`},
	"DELETE /{name}/backfill": {token.Operator, ""},
}

func TestAuthorization_EveryRouteAllowsWhatItsRowSays(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var known []string
	for _, r := range s.api.Routes() {
		path, ours := strings.CutPrefix(r.Pattern, "/v1/schedules")
		if !ours {
			continue
		}
		name := strings.TrimSpace(r.Method + " " + path)
		known = append(known, name)
		row, has := matrix[name]
		if !has {
			t.Errorf("%s has no row", name)
			continue
		}
		ask := func(secret string) answer {
			s.set("a", never("noop"))
			return s.send(secret, r.Method, strings.Replace(r.Pattern, "{name}", "a", 1), row.body)
		}
		for _, secret := range []string{"", "unknown", "viewer", "submitter", "operator", "admin", "worker"} {
			got := ask(secret)
			want := 0 // the route has seen the request
			switch who := everybody[secret]; {
			case who == nil:
				want = http.StatusUnauthorized
			case who.Role == token.Worker || who.Role < row.role:
				want = http.StatusForbidden
			}
			seen := got.Code < 300 || got.Code == http.StatusConflict // there is no backfill to end
			if want != 0 && got.Code != want || want == 0 && !seen {
				t.Errorf("%s by %q: %d, want %d: %s", name, secret, got.Code, want, got.Body)
			}
		}
		for _, limited := range []string{"tenant", "sleeper"} {
			switch got := ask(limited); {
			case path == "":
				s.want(got, http.StatusOK, `{"schedules":[]}`)
			case r.Method == http.MethodPut && limited == "sleeper":
				s.want(got, http.StatusForbidden, "not for the behavior noop")
			default:
				s.want(got, http.StatusNotFound, "not-found")
			}
		}
	}
	for name := range matrix {
		if !slices.Contains(known, name) {
			t.Errorf("%s is no route", name)
		}
	}
}

// Whoever may not submit a program may neither schedule one, nor touch a schedule that runs one.
func TestAuthorization_ASchedulesRunsAreSubmits(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("program", never("exec"))
	s.want(s.send("submitter", "GET", "/v1/schedules/program", ""), 200, `"exec"`)
	s.want(s.send("submitter", "PUT", "/v1/schedules/new", never("exec")), 403, "runs programs")
	s.want(s.send("submitter", "PUT", "/v1/schedules/program", never("noop")), 403, "runs programs")
	for _, path := range []string{"run", "resume", "backfill"} {
		s.want(s.send("submitter", "POST", "/v1/schedules/program/"+path, matrix["POST /{name}/"+path].body), 403,
			"runs programs")
	}
	s.want(s.send("executor", "PUT", "/v1/schedules/new", never("exec")), 201, `"changed":true`)
	s.want(s.send("executor", "POST", "/v1/schedules/program/run", ""), 202, `"id":"program/run:`)
	s.want(s.send("sleeper", "PUT", "/v1/schedules/program", never("sleep")), 409, "taken")
	s.want(s.send("sleeper", "PUT", "/v1/schedules/t", never("sleep")), 201, "")
	s.want(s.send("tenant", "PUT", "/v1/schedules/t1.a", never("noop")), 201, "")
	s.want(s.send("tenant", "GET", "/v1/schedules/t", ""), 404, "not-found")
	s.want(s.send("tenant", "GET", "/v1/schedules", ""), 200, `"t1.a"`)
}

func TestOpenAPI_HasTheRoutesAndTheMembersOfADefinition(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var doc struct {
		Paths      map[string]map[string]struct{ Responses map[string]any }
		Components struct {
			Schemas map[string]struct{ Properties map[string]map[string]any }
		}
	}
	text := s.want(s.send("viewer", "GET", "/openapi.json", ""), 200, "").Body.Bytes()
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for name := range matrix {
		method, path, _ := strings.Cut(name, " ")
		if _, has := doc.Paths["/v1/schedules"+path][strings.ToLower(method)]; !has {
			t.Errorf("%s is not documented", name)
		}
	}
	all := doc.Components.Schemas
	if of := all["Schedule"].Properties["definition"]["$ref"]; of != "#/components/schemas/ScheduleForm" {
		t.Errorf("the definition of a schedule is %v", of)
	}
	for member, want := range map[string]string{
		"cron":             "string",
		"grace":            "string",
		"start":            "string",
		"keep":             "integer",
		"pause_on_failure": "boolean",
	} {
		if got := all["ScheduleForm"].Properties[member]; got["type"] != want {
			t.Errorf("member %s is %v, want the type %s", member, got, want)
		}
	}
}
