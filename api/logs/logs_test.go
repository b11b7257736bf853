package logs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"taskledger/store"
	"taskledger/tasklog"
)

// at returns the time of a line as a parameter has it.
func at(line int) string {
	return begin.Time().Add(time.Duration(line) * time.Millisecond).Format(time.RFC3339Nano)
}

func TestPage_PagesJoinWithoutLossOrRepetitionUnderEveryLimit(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.write(t, "a/b", 1, 1, 1, 2, 3, 7, 8)
	w.write(t, "a/b", 2, 3, 4)
	w.write(t, "other", 1, 1, 1)
	s := serve(t, w)
	for _, c := range []struct{ query, want string }{
		{"", "1:1 1:2 1:3 1:3-6 1:7 1:8 2:2-2 2:3 2:4"},
		{"attempt=2", "2:2-2 2:3 2:4"},
		{"attempt=3", ""},
		{"level=info", "1:1 1:2 1:3 1:3-6 1:7 1:8 2:2-2 2:3 2:4"},
		{"level=error", "1:1 1:3 1:3-6 1:7 2:2-2 2:3"},
		{"start=" + at(2) + "&end=" + at(3), "1:2 1:3 2:2-2 2:3"},
		{"start=" + at(8), "1:8"},
		{"end=" + at(1), "1:1"},
		{"start=" + at(3) + "&end=" + at(2), ""},
	} {
		for _, limit := range []int{1, 2, 3, 4, 100, 1000} {
			lines, _ := s.pages(fmt.Sprintf("a~b/logs?limit=%d&%s", limit, c.query))
			if got := told(lines); got != c.want {
				t.Errorf("%s, %d a page: %s, want %s", c.query, limit, got, c.want)
			}
		}
		var text strings.Builder
		lines, _ := s.pages("a~b/logs?" + c.query)
		for _, l := range lines {
			stamp, _ := l.Time.MarshalText()
			fmt.Fprintf(&text, "%s %s %d %s\n", stamp, l.Level, l.Attempt, l.Message)
		}
		if got := s.want(s.get("viewer", "a~b/logs.txt?"+c.query), 200, "").Body.String(); got != text.String() {
			t.Errorf("%s as text: %q, want %q", c.query, got, text.String())
		}
	}
}

func TestPage_HasLinesAndGapsInThisForm(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.write(t, "x", 1, 2, 2)
	s := serve(t, w)
	var p struct{ Lines []json.RawMessage }
	if err := json.Unmarshal(s.get("viewer", "x/logs").Body.Bytes(), &p); err != nil || len(p.Lines) != 2 {
		t.Fatalf("%d lines, %v", len(p.Lines), err)
	}
	for i, want := range []string{
		`{"time":"2023-11-14T22:13:20.002Z","level":"error","message":"1 line is missing: older than the newest ` +
			`100000 lines or 10 MiB of an attempt, or not kept by the store any more, or written faster than the log takes ` +
			`them, or while it was away","attempt":1,"number":1,"missing":1}`,
		`{"time":"2023-11-14T22:13:20.002Z","level":"info","message":"line 2, «xx»","attempt":1,"number":2}`,
	} {
		if got := string(p.Lines[i]); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestPage_CursorOfTheEndGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.write(t, "x", 1, 1, 3)
	s := serve(t, w)
	_, last := s.pages("x/logs?limit=3")
	for range 2 {
		last = s.page("x/logs?cursor=" + last.Cursor)
		if len(last.Lines) > 0 || last.More || last.Ended {
			t.Errorf("at the end: %+v", last)
		}
	}
	w.write(t, "x", 2, 1, 2)
	if last = s.page("x/logs?cursor=" + last.Cursor); told(last.Lines) != "2:1 2:2" {
		t.Errorf("what was written later: %+v", last.Lines)
	}
	w.set(func() { w.ended = true })
	if last = s.page("x/logs?cursor=" + last.Cursor); !last.Ended {
		t.Error("the end is not told")
	}
}

func TestLogs_SayWhyThereAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.write(t, "x", 1, 1, 1)
	s := serve(t, w)
	for _, path := range []string{"logs", "logs.txt"} {
		s.want(s.get("viewer", "nobody/"+path), 404, "not-found")
		for _, c := range []struct {
			fails   error
			status  int
			problem string
		}{
			{tasklog.ErrNone, 503, "problem:unavailable"},
			{store.ErrUnavailable, 503, "problem:unavailable"},
			{tasklog.ErrGone, 410, "problem:not-kept"},
		} {
			w.set(func() { w.fails, w.pages = c.fails, 0 })
			got := s.want(s.get("viewer", "x/"+path), c.status, c.problem)
			if got.Header().Get("Content-Type") != "application/problem+json" ||
				(got.Header().Get("Retry-After") != "") != (c.status == 503) {
				t.Errorf("%s: headers %v", path, got.Header())
			}
		}
		w.set(func() { w.fails = nil })
	}
}

func TestLogs_BadParametersNameTheFieldAndTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.write(t, "x", 1, 1, 1)
	w.write(t, "y", 1, 1, 1)
	s := serve(t, w)
	for query, want := range map[string]string{
		"start=noon":                        "want a time such as",
		"end=2026-13-01T00:00:00Z":          "want a time such as",
		"end=1970-01-01T00:00:00Z":          "want a time after",
		"attempt=0":                         "want 1 to 4294967295",
		"attempt=4294967296":                "want 1 to 4294967295",
		"level=warn":                        "want info or error",
		"limit=0":                           "want 1 to 1000",
		"limit=1001":                        "want 1 to 1000",
		"wait=61s":                          "1m0s at most",
		"cursor=x":                          "none of a log",
		"cursor=" + s.page("y/logs").Cursor: "of task y",
		"colour=red":                        "no such parameter",
	} {
		field, _, _ := strings.Cut(query, "=")
		paths := []string{"logs"}
		if strings.Contains("start end attempt level colour", field) {
			paths = append(paths, "logs.txt")
		}
		for _, path := range paths {
			got := s.want(s.get("viewer", "x/"+path+"?"+query), 400, want)
			s.want(got, 400, fmt.Sprintf(`"field":%q`, field))
		}
	}
	s.want(s.get("viewer", "x/logs.txt?limit=1"), 400, `"field":"limit"`)
}

// A page of text is in memory at a time, whatever there is.
func TestText_IsWrittenPageByPage(t *testing.T) {
	t.Parallel()
	w := newWorld()
	const lines = 12_000
	var batches []uint64
	for i := uint64(1); i <= lines; i += 400 {
		batches = append(batches, i, i+399)
	}
	w.write(t, "x", 1, batches...)
	s := serve(t, w)
	got := s.want(s.get("viewer", "x/logs.txt"), 200, "")
	if n := strings.Count(got.Body.String(), "\n"); n != lines {
		t.Errorf("%d lines, want %d", n, lines)
	}
	if is := got.Header().Get("Content-Type"); is != "text/plain; charset=utf-8" {
		t.Errorf("type %s", is)
	}
	w.set(func() { w.fails, w.pages = store.ErrUnavailable, 3 })
	defer func() {
		if recover() != http.ErrAbortHandler { //nolint:errorlint // it is this value itself
			t.Error("a text that ends early is taken for the whole")
		}
	}()
	s.get("viewer", "x/logs.txt")
}

func TestAuthorization_LogsAreForThoseWhoMaySeeTheTask(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.write(t, "x", 1, 1, 1)
	w.write(t, "t1.x", 1, 1, 1)
	s := serve(t, w)
	for secret, want := range map[string]int{
		"":          401,
		"unknown":   401,
		"worker":    403,
		"viewer":    200,
		"submitter": 200,
		"operator":  200,
		"admin":     200,
		"tenant":    404,
		"sleeper":   404,
	} {
		for _, path := range []string{"x/logs", "x/logs.txt"} {
			s.want(s.get(secret, path), want, "")
		}
	}
	s.want(s.get("tenant", "t1.x/logs"), 200, "line 1")
	w.set(func() { w.fails = tasklog.ErrGone })
	none, other := s.get("sleeper", "nobody/logs"), s.want(s.get("sleeper", "x/logs"), 404, "")
	if none.Body.String() != other.Body.String() {
		t.Errorf("a task that is not there and that of another: %s and %s", none.Body, other.Body)
	}
}

func TestOpenAPI_HasTheRoutesAndTheMembersOfALine(t *testing.T) {
	t.Parallel()
	s := serve(t, newWorld())
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Content map[string]any }
		}
		Components struct {
			Schemas map[string]struct{ Properties map[string]map[string]any }
		}
	}
	if err := json.Unmarshal(s.want(s.ask("viewer", "/openapi.json"), 200, "").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if _, has := doc.Paths["/v1/tasks/{id}/logs"]["get"].Responses["200"].Content["application/json"]; !has {
		t.Error("the page is not documented")
	}
	if _, has := doc.Paths["/v1/tasks/{id}/logs.txt"]["get"]; !has {
		t.Error("the text is not documented")
	}
	if of := doc.Components.Schemas["LogPage"].Properties["lines"]["items"]; fmt.Sprint(of) !=
		"map[$ref:#/components/schemas/LogLine]" {
		t.Errorf("lines are of %v", of)
	}
	for member, want := range map[string]string{"time": "string", "level": "string", "attempt": "integer"} {
		if got := doc.Components.Schemas["LogLine"].Properties[member]; got["type"] != want {
			t.Errorf("member %s is %v, want the type %s", member, got, want)
		}
	}
}
