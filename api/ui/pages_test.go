package ui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"taskledger/api/token"
)

// matrix says of every route of the dashboard who may use it, and what of it tokens see that are for some tasks alone:
// "one" task, which others have to be not found, "own" ones of many, "none", "all" of the cluster.
var matrix = map[string]struct {
	role  token.Role
	scope string
}{
	"GET /ui/{$}":                           {token.Viewer, "own"},
	"GET /ui/tasks":                         {token.Viewer, "own"},
	"GET /ui/tasks.jsonl":                   {token.Viewer, "own"},
	"GET /ui/tasks/{id}":                    {token.Viewer, "one"},
	"GET /ui/tasks/{id}/logs":               {token.Viewer, "one"},
	"GET /ui/tasks/{id}/export":             {token.Viewer, "one"},
	"GET /ui/tasks/{id}/state":              {token.Viewer, "one"},
	"POST /ui/tasks/{id}/change":            {token.Operator, "one"},
	"POST /ui/changes":                      {token.Operator, "own"},
	"GET /ui/matching":                      {token.Operator, "own"},
	"GET /ui/jobs":                          {token.Operator, "own"},
	"POST /ui/jobs":                         {token.Operator, "own"},
	"GET /ui/jobs/{job}":                    {token.Operator, "own"},
	"POST /ui/jobs/{job}/stop":              {token.Operator, "own"},
	"GET /ui/submit":                        {token.Submitter, "own"},
	"POST /ui/submit":                       {token.Submitter, "own"},
	"GET /ui/behaviors":                     {token.Viewer, "own"},
	"GET /ui/schedules":                     {token.Viewer, "own"},
	"GET /ui/schedules/{name}":              {token.Viewer, "one"},
	"POST /ui/schedules":                    {token.Submitter, "own"},
	"GET /ui/collections":                   {token.Viewer, "own"},
	"GET /ui/stores":                        {token.Viewer, "none"},
	"GET /ui/stores/{name}":                 {token.Viewer, "all"},
	"GET /ui/work":                          {token.Viewer, "own"},
	"GET /ui/work/{id}":                     {token.Viewer, "one"},
	"POST /ui/work/{id}/reset":              {token.Operator, "one"},
	"POST /ui/work/{id}/rerun":              {token.Operator, "one"},
	"GET /ui/nodes":                         {token.Viewer, "all"},
	"GET /ui/checkpoint":                    {token.Viewer, "all"},
	"GET /ui/checkpoint.txt":                {token.Viewer, "all"},
	"GET /ui/shards/{shard}/export":         {token.Viewer, "all"},
	"GET /ui/settings":                      {token.Viewer, "all"},
	"GET /ui/audit":                         {token.Viewer, "all"},
	"POST /ui/behaviors/{behavior}/pause":   {token.Operator, "all"},
	"POST /ui/behaviors/{behavior}/unpause": {token.Operator, "all"},
	"GET /ui/login":                         {token.Nobody, "none"},
	"POST /ui/login":                        {token.Nobody, "none"},
	"POST /ui/logout":                       {token.Viewer, "none"},
	"POST /ui/links":                        {token.Viewer, "none"},
	"POST /ui/zone":                         {token.Nobody, "none"},
	"GET /ui/static/{hash}/{file}":          {token.Nobody, "none"},
}

// formOf returns a form that a route takes, about a task; nil = it takes none, or says what is wrong with another one.
func formOf(route, id string) url.Values {
	switch route {
	case "POST /ui/tasks/{id}/change":
		return url.Values{"operation": {"suspend"}, "version": {"0.1.0"}}
	case "POST /ui/changes":
		return url.Values{"operation": {"suspend"}, "task": {"0.1.0 " + id}}
	case "POST /ui/jobs":
		return url.Values{"operation": {"cancel"}, "behavior": {"sleep"}, "once": {"once"}}
	case "POST /ui/work/{id}/reset", "POST /ui/work/{id}/rerun":
		return url.Values{"what": {"run"}}
	case "POST /ui/submit":
		return url.Values{"behavior": {"noop"}, "params": {"{"}}
	}
	return nil
}

func TestRoutes_AllowWhatTheirRowsSay(t *testing.T) {
	s := serve(t)
	s.submit("noop", "t1.a", "{}")
	s.submit("noop", "other", "{}")
	job := s.order("operator", formOf("POST /ui/jobs", "")) // it runs from now on
	foreign := strings.TrimPrefix(job.header.Get("Location"), "/ui/jobs/")
	cookie := s.login("admin")
	known := map[string]bool{}
	for _, r := range s.routes() {
		name := r.Method + " " + r.Pattern
		known[name] = true
		row, has := matrix[name]
		if !has {
			t.Errorf("%s has no row", name)
			continue
		}
		path := func(id string) string {
			return strings.TrimSuffix(strings.NewReplacer("{id}", id, "{name}", "none", "{job}", foreign).Replace(r.Pattern), "{$}")
		}
		for _, secret := range []string{"", "unknown", "viewer", "submitter", "operator", "admin", "worker"} {
			got := s.send(secret, r.Method, path("t1.a"), formOf(name, "t1.a"))
			var want int // 0 = the route has seen the request
			switch who := everybody[secret]; {
			case row.role == token.Nobody:
			case who == nil && r.Method == http.MethodGet:
				want = http.StatusSeeOther
			case who == nil:
				want = http.StatusUnauthorized
			case who.Role == token.Worker || who.Role < row.role:
				want = http.StatusForbidden
			}
			login := strings.HasPrefix(got.header.Get("Location"), "/ui/login")
			switch {
			case want != 0 && got.status != want, got.status >= 500,
				want == 0 && (got.status == http.StatusForbidden && name != "POST /ui/links" || login && name != "POST /ui/logout"):
				t.Errorf("%s by %q: %d, want %d: %s", name, secret, got.status, want, clip(got.text))
			}
		}
		for _, from := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			if got := s.send("admin", r.Method, path("t1.a"), nil, from...); got.status != http.StatusForbidden {
				t.Errorf("%s from %s: %d", name, from, got.status)
			}
		}
		byCookie := s.send("", r.Method, path("t1.a"), nil, cookie...)
		if refused := strings.Contains(byCookie.text, "a cookie alone changes nothing"); refused != (r.Method == http.MethodPost) {
			t.Errorf("%s by a cookie that no page sends: %d: %s", name, byCookie.status, clip(byCookie.text))
		}
		for _, limited := range []string{"tenant", "sleeper"} {
			got := s.send(limited, r.Method, path("other"), formOf(name, "other"))
			switch {
			case row.scope == "one" && got.status != http.StatusNotFound,
				row.scope == "all" && got.status != http.StatusForbidden,
				got.status >= 500:
				t.Errorf("%s by %s: %d: %s", name, limited, got.status, clip(got.text))
			}
			if row.scope == "own" {
				s.wantNot(got, "/ui/tasks/other", `href="/ui/jobs/`+foreign)
				if may := everybody[limited].Role >= row.role; may == (got.status == http.StatusForbidden) {
					t.Errorf("%s by %s: %d: %s", name, limited, got.status, clip(got.text))
				}
				if strings.Contains(name, "{job}") && everybody[limited].Role >= row.role && got.status != http.StatusNotFound {
					t.Errorf("%s of another one by %s: %d: %s", name, limited, got.status, clip(got.text))
				}
			}
		}
	}
	for name := range matrix {
		if !known[name] {
			t.Errorf("%s is no route", name)
		}
	}
}

// hostile texts are shown as they are, and do nothing.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `javascript:alert(1)`, `{{.Version}}`, "\u202eevil\u2066",
	"a\x00b\x1b[2Jc", `'; DROP TABLE tasks; --`, strings.Repeat("w", 100_000), "&lt;b&gt;", "\ufeff", "\xff\xfe",
}

func TestTask_ShowsWhatItCarriesAsText(t *testing.T) {
	s := serve(t)
	for i, text := range hostile {
		id := fmt.Sprintf("h/%d", i)
		params, err := json.Marshal(text) // control characters come escaped
		if err != nil {
			t.Fatal(err)
		}
		s.submit("fails", id, string(params))
		for _, page := range []string{"/ui/tasks/h~" + fmt.Sprint(i), "/ui/tasks?column=error"} {
			got := s.want(s.get("viewer", page), 200, "FAILURE")
			s.wantNot(got, "<script>alert", "<img", "onerror=alert(1)>", `href="javascript:`,
				"\x00", "\x1b", "\u202e", "\u2066", "\ufeff")
		}
	}
}

// Every page keeps to its content security policy: no script and no style stands in it.
func TestPages_HaveNoInlineScriptsAndStyles(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	for _, path := range []string{"/ui/", "/ui/tasks", "/ui/tasks/a", "/ui/login", "/ui/none", "/ui/submit", "/ui/tasks/a/logs",
		"/ui/tasks/a/state", "/ui/behaviors", "/ui/schedules", "/ui/collections", "/ui/stores", "/ui/stores/none", "/ui/work",
		"/ui/nodes", "/ui/checkpoint", "/ui/settings", "/ui/audit", "/ui/matching?operation=delete&behavior=noop", "/ui/jobs", "/ui/jobs/none"} {
		got := s.get("admin", path)
		lower := strings.ToLower(got.text)
		for _, inline := range []string{"<style", " style=", "<script>", " onclick=", "javascript:", "http://", "https://", "//cdn"} {
			if strings.Contains(lower, inline) {
				t.Errorf("%s has %s", path, inline)
			}
		}
		if csp := got.header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("%s: %s", path, csp)
		}
	}
}

func TestStatic_IsKeptForEverByItsHash(t *testing.T) {
	s := serve(t)
	page := s.get("", "/ui/login")
	for _, name := range []string{"style.css", "ui.js", "htmx-4.0.1.min.js", "icon.svg"} {
		_, rest, _ := strings.Cut(page.text, "/ui/static/")
		for !strings.HasPrefix(rest[strings.Index(rest, "/")+1:], name) {
			var more bool
			if _, rest, more = strings.Cut(rest, "/ui/static/"); !more {
				t.Fatalf("the page does not load %s", name)
			}
		}
		hash, _, _ := strings.Cut(rest, "/")
		got := s.want(s.get("", "/ui/static/"+hash+"/"+name), 200)
		if cache := got.header.Get("Cache-Control"); !strings.Contains(cache, "immutable") || len(got.text) == 0 {
			t.Errorf("%s: %s", name, cache)
		}
		s.want(s.get("", "/ui/static/000000000000/"+name), 404, "no such file")
	}
	s.want(s.get("", "/ui/static/x/none"), 404, "no such file")
}
