package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/token"
)

// matrix says of every route who may use it, and what of it tokens that are for some tasks alone: "one" task, which
// others have to be not found, "own" ones of many, "none", "all" of the cluster, which such a token may not see.
var matrix = map[string]struct {
	role  token.Role
	scope string
	body  string
}{
	"POST /v1/tasks":        {token.Submitter, "own", `{"behavior":"noop"}`},
	"POST /v1/tasks:batch":  {token.Submitter, "own", `{"tasks":[{"behavior":"noop"}]}`},
	"POST /v1/tasks:change": {token.Operator, "own", `{"operation":"retry","ids":["t1.a"]}`},
	"POST /v1/tasks:change-matching": {token.Operator, "own",
		`{"operation":"retry","filter":{"status":"FAILURE","behavior":"sleep"}}`},
	"GET /v1/tasks":                         {token.Viewer, "own", ""},
	"GET /v1/tasks/{id}":                    {token.Viewer, "one", ""},
	"DELETE /v1/tasks/{id}":                 {token.Operator, "one", ""},
	"GET /v1/tasks/{id}/history":            {token.Viewer, "one", ""},
	"GET /v1/tasks/{id}/explain":            {token.Viewer, "one", ""},
	"POST /v1/tasks/{id}/cancel":            {token.Operator, "one", ""},
	"POST /v1/tasks/{id}/suspend":           {token.Operator, "one", ""},
	"POST /v1/tasks/{id}/resume":            {token.Operator, "one", ""},
	"POST /v1/tasks/{id}/retry":             {token.Operator, "one", ""},
	"POST /v1/tasks/{id}/run-now":           {token.Operator, "one", ""},
	"GET /v1/behaviors":                     {token.Viewer, "own", ""},
	"POST /v1/behaviors/{behavior}/pause":   {token.Operator, "all", ""},
	"POST /v1/behaviors/{behavior}/unpause": {token.Operator, "all", ""},
	"GET /v1/nodes":                         {token.Viewer, "all", ""},
	"GET /v1/shards":                        {token.Viewer, "all", ""},
	"GET /v1/checkpoint":                    {token.Viewer, "all", ""},
	"GET /v1/replay":                        {token.Viewer, "own", ""},
	"GET /v1/export":                        {token.Viewer, "own", ""},
	"GET /v1/journal":                       {token.Viewer, "all", ""},
	"GET /v1/metrics":                       {token.Viewer, "all", ""},
	"GET /v1/health":                        {token.Nobody, "none", ""},
	"GET /v1/version":                       {token.Nobody, "none", ""},
	"GET /v1/ready":                         {token.Nobody, "none", ""},
	"GET /openapi.json":                     {token.Viewer, "none", ""},
}

func TestAuthorization_EveryRouteAllowsWhatItsRowSays(t *testing.T) {
	s, _ := serve(t, nil)
	var known []string
	for _, r := range s.api.Routes() {
		known = append(known, r.Method+" "+r.Pattern)
	}
	for name := range matrix {
		if !slices.Contains(known, name) {
			t.Errorf("%s is no route", name)
		}
	}
	for _, r := range s.api.Routes() {
		name := r.Method + " " + r.Pattern
		row, has := matrix[name]
		if !has {
			t.Errorf("%s has no row", name)
			continue
		}
		ask := func(secret, id string) answer {
			path := strings.NewReplacer("{id}", id, "{behavior}", "noop").Replace(r.Pattern)
			var body any
			if row.body != "" {
				body = row.body
			}
			return s.send(secret, r.Method, path, body)
		}
		for _, secret := range []string{"", "unknown", "viewer", "submitter", "operator", "admin", "worker"} {
			got := ask(secret, "nobody").status
			var want int // 0 = the route has seen the request
			switch who := everybody[secret]; {
			case row.role == token.Nobody:
			case who == nil:
				want = http.StatusUnauthorized
			case who.Role == token.Worker || who.Role < row.role:
				want = http.StatusForbidden
			}
			if got != want && (want != 0 || got == http.StatusUnauthorized || got == http.StatusForbidden) ||
				got >= 500 {
				t.Errorf("%s by %q: %d, want %d", name, secret, got, want)
			}
		}
		for _, limited := range []string{"tenant", "sleeper"} {
			got := ask(limited, "other").status
			switch row.scope {
			case "one":
				if got != http.StatusNotFound {
					t.Errorf("%s of another's task by %s: %d", name, limited, got)
				}
			case "all":
				if got != http.StatusForbidden {
					t.Errorf("%s by %s: %d", name, limited, got)
				}
			case "own", "none":
				if got == http.StatusUnauthorized || got >= 500 ||
					got == http.StatusForbidden && (limited == "tenant" || row.body == "") {
					t.Errorf("%s by %s: %d", name, limited, got)
				}
			}
		}
	}
}

// What a token is not for it neither sees, counts, changes nor makes.
func TestAuthorization_ALimitedTokenKnowsOfItsTasksAlone(t *testing.T) {
	s, open := serve(t, nil)
	s.submit("submitter", "t1.a", "gate")
	s.submit("submitter", "t2.a", "gate")
	s.submit("submitter", "t2.s/1", "sleep")
	open()
	for _, id := range []string{"t1.a", "t2.a", "t2.s~1"} {
		s.want(s.send("viewer", "GET", "/v1/tasks/"+id+"?wait=30s", nil), 200, "SUCCESS")
	}
	for secret, its := range map[string]struct {
		sees, not string
		behavior  string
	}{
		"tenant":  {"t1.a", "t2.", "gate"},
		"sleeper": {"t2.s/1", "gate", "sleep"},
	} {
		for _, path := range []string{"/v1/tasks", "/v1/tasks?affinity-prefix=t", "/v1/replay"} {
			got := s.want(s.send(secret, "GET", path, nil), 200, its.sees)
			if strings.Contains(got.text, its.not) {
				t.Errorf("%s by %s: %s", path, secret, got.text)
			}
		}
		counts := s.want(s.send(secret, "GET", "/v1/behaviors", nil), 200, its.behavior)
		if n := strings.Count(counts.text, `"tasks":1`); n != 1 || strings.Count(counts.text, `"tasks":`) != 1 {
			t.Errorf("counts by %s: %s", secret, counts.text)
		}
	}
	for _, path := range []string{
		"/v1/tasks?affinity=t2.a",
		"/v1/tasks?affinity-prefix=t2",
		"/v1/tasks?affinity=t2.a&affinity-prefix=t2.",
		"/v1/tasks?affinity-prefix=u",
	} {
		if got := s.want(s.send("tenant", "GET", path, nil), 200, "tasks"); strings.Contains(got.text, "t2.") {
			t.Errorf("%s: %s", path, got.text)
		}
	}
	for _, path := range []string{
		"/v1/tasks/t2.a",
		"/v1/tasks/t2.a/history",
		"/v1/tasks/t2.a/explain",
		"/v1/tasks/t2.a?forgotten=true",
		"/v1/tasks/t2.a?seq=1",
		"/v1/export?task=t2.a",
	} {
		for _, secret := range []string{"tenant", "sleeper"} {
			is := s.want(s.send(secret, "GET", path, nil), 404, "not-found")
			none := s.want(s.send(secret, "GET", strings.Replace(path, "t2.a", "t2.none", 1), nil), 404, "not-found")
			if is.text != none.text {
				t.Errorf("%s tells whether there is one: %s, %s", path, is.text, none.text)
			}
		}
	}
	for _, secret := range []string{"tenant", "sleeper"} {
		s.want(s.send(secret, "GET", "/v1/export?shard=0", nil), 403, "forbidden")
	}
	s.want(s.send("tenant", "GET", "/v1/export?task=t1.a", nil), 200, "t1.a")
	for _, secret := range []string{"tenant", "sleeper"} {
		got := s.want(s.send(secret, "POST", "/v1/tasks:change",
			map[string]any{"operation": "delete", "ids": []string{"t2.a"}}), 200, "not-found")
		if strings.Contains(got.text, "SUCCESS") {
			t.Error(got.text)
		}
		s.want(s.send(secret, "DELETE", "/v1/tasks/t2.a", nil), 404, "not-found")
	}
	s.want(s.send("viewer", "GET", "/v1/tasks/t2.a", nil), 200, "SUCCESS")

	s.want(s.send("tenant", "POST", "/v1/tasks", `{"behavior":"noop","id":"t2.b"}`), 403, "forbidden")
	s.want(s.send("sleeper", "POST", "/v1/tasks", `{"behavior":"noop"}`), 403, "forbidden")
	sleep := `{"behavior":"sleep","id":"t1.a","params":{"duration":"0s"}}`
	for _, got := range []answer{
		s.send("sleeper", "POST", "/v1/tasks", sleep),
		s.send("sleeper", "POST", "/v1/tasks:batch", `{"tasks":[`+sleep+`]}`),
	} {
		if !strings.Contains(got.text, "the id is taken") || strings.Contains(got.text, "gate") {
			t.Errorf("of another's id: %s", got.text)
		}
	}
	s.want(s.send("operator", "POST", "/v1/behaviors/noop/pause", `{"reason":"secret"}`), 204, "")
	got := s.want(s.send("tenant", "GET", "/v1/behaviors", nil), 200, "paused")
	if strings.Contains(got.text, "secret") {
		t.Errorf("pauses of others: %s", got.text)
	}
	s.want(s.send("operator", "POST", "/v1/tasks", `{"behavior":"noop","id":"t1.paused"}`), 202, "t1.paused")
	got = s.want(s.send("tenant", "GET", "/v1/tasks/t1.paused/explain", nil), 200, "paused")
	if strings.Contains(got.text, "secret") {
		t.Errorf("a pause of others: %s", got.text)
	}
	s.want(s.send("operator", "POST", "/v1/behaviors/noop/unpause", nil), 204, "")
	s.want(s.send("tenant", "POST", "/v1/tasks", `{"behavior":"noop"}`), 202, `"id":"t1.`)
	keyed := s.want(s.send("tenant", "POST", "/v1/tasks", `{"behavior":"noop"}`, "Idempotency-Key", "k"), 202,
		`"id":"t1.`)
	again := s.want(s.send("tenant", "POST", "/v1/tasks", `{"behavior":"noop"}`, "Idempotency-Key", "k"), 202,
		`"repeated":true`)
	if keyed.get(t, "id") != again.get(t, "id") {
		t.Errorf("%s, %s", keyed.text, again.text)
	}
}

var _ api.Tokens = everybody
