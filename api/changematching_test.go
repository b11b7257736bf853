package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/bulk"

	"taskledger/task"
)

// last is the last line of a stream.
func (a answer) last(t *testing.T) (line map[string]any) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(a.text), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
		t.Fatalf("%s: %v", a.text, err)
	}
	return line
}

func TestChangeMatching_ChangesWhatTheFilterSelectsAndTheTokenMayChange(t *testing.T) {
	s, open := serve(t, nil)
	for i := range 3 {
		s.want(s.send("submitter", "POST", "/v1/tasks",
			fmt.Sprintf(`{"behavior":"gate","params":"fail","id":"t1.%d"}`, i)), 202, "id")
		s.want(s.send("submitter", "POST", "/v1/tasks",
			fmt.Sprintf(`{"behavior":"gate","params":"fail","id":"t2.%d"}`, i)), 202, "id")
	}
	open()
	for i := range 3 {
		for _, tenant := range []string{"t1", "t2"} {
			s.want(s.send("viewer", "GET", fmt.Sprintf("/v1/tasks/%s.%d?wait=30s", tenant, i), nil), 200, "FAILURE")
		}
	}
	for _, c := range []struct {
		secret, body     string
		matched, changed float64
	}{
		{"operator", `{"operation":"retry","filter":{"status":"FAILURE"},"dry_run":true}`, 6, 0},
		{"tenant", `{"operation":"retry","filter":{"status":"FAILURE"},"dry_run":true}`, 3, 0},
		{"tenant", `{"operation":"delete","filter":{"affinity-prefix":"t2."}}`, 0, 0},
		{"sleeper", `{"operation":"delete","filter":{"behavior":"gate"}}`, 0, 0},
		{"sleeper", `{"operation":"delete","filter":{"status":"FAILURE"}}`, 0, 0},
		{"tenant", `{"operation":"delete","filter":{"behavior":"gate"}}`, 3, 3},
		{"operator", `{"operation":"delete","filter":{"status":"FAILURE"}}`, 3, 3},
		{"operator", `{"operation":"delete","filter":{"status":"FAILURE"}}`, 0, 0},
	} {
		got := s.want(s.send(c.secret, "POST", "/v1/tasks:change-matching", c.body), 200, `"done":true`)
		line := got.last(t)
		if line["matched"] != c.matched || line["changed"] != c.changed || line["done"] != true {
			t.Errorf("%s by %s: %v", c.body, c.secret, line)
		}
		if counted := strings.Contains(got.text, `"behavior":"gate"`); counted != strings.Contains(c.body, "dry_run") {
			t.Errorf("%s: %s", c.body, got.text)
		}
	}
	s.want(s.send("viewer", "GET", "/v1/tasks", nil), 200, `{"tasks":[]}`)
}

func TestChangeMatching_RefusesWhatWouldSelectAllOrNothing(t *testing.T) {
	s, _ := serve(t, nil)
	for body, want := range map[string]string{
		`{"operation":"retry"}`:                                                                            "filter",
		`{"operation":"retry","filter":{}}`:                                                                "filter",
		`{"operation":"retry","filter":{"colour":"red"}}`:                                                  "colour",
		`{"operation":"retry","filter":{"status":""}}`:                                                     "status",
		`{"operation":"retry","filter":{"status":"done"}}`:                                                 "status",
		`{"operation":"retry","filter":{"status":7}}`:                                                      "malformed",
		`{"operation":"suspend","filter":{"status":"FAILURE"}}`:                                            "operation",
		`{"operation":"retry","filter":{"status":"FAILURE"},"reason":"x"}`:                                 "reason",
		`{"operation":"retry","filter":{"status":"FAILURE"},"cursor":"x"}`:                                 "cursor",
		`{"operation":"retry","filter":{"status":"FAILURE"},"expected":-1}`:                                "expected",
		`{"operation":"retry","filter":{"status":"FAILURE"},"expected":1,"dry_run":true}`:                  "expected",
		`{"operation":"retry","filter":{"status":"FAILURE"},"expected":1,"cursor":"x"}`:                    "expected",
		`{"operation":"cancel","filter":{"status":"RUNNING"},"reason":"` + strings.Repeat("x", 300) + `"}`: "reason",
	} {
		s.want(s.send("operator", "POST", "/v1/tasks:change-matching", body), 400, want)
	}
}

// Whoever says how many tasks there have to be changes none when there are others.
func TestChangeMatching_OfAnotherNumberThanExpectedChangesNothing(t *testing.T) {
	s, _ := serve(t, nil)
	for i := range 3 {
		s.want(s.send("submitter", "POST", "/v1/tasks",
			fmt.Sprintf(`{"behavior":"gate","params":"x","delay_ms":3600000,"id":"t1.%d"}`, i)), 202, "id")
		s.want(s.send("submitter", "POST", "/v1/tasks",
			fmt.Sprintf(`{"behavior":"gate","params":"x","delay_ms":3600000,"id":"t2.%d"}`, i)), 202, "id")
	}
	ask := func(expected int) string {
		return fmt.Sprintf(`{"operation":"cancel","filter":{"substatus":"scheduled"},"expected":%d}`, expected)
	}
	for _, c := range []struct {
		secret        string
		expected, are int
	}{{"operator", 5, 6}, {"operator", 7, 6}, {"operator", 0, 6}, {"tenant", 6, 3}, {"tenant", 0, 3}} {
		a := s.want(s.send(c.secret, "POST", "/v1/tasks:change-matching", ask(c.expected)), 409,
			fmt.Sprintf("%d tasks match", c.are))
		if a.problem() != "other-count" || a.get(t, "got") != float64(c.are) || a.get(t, "field") != "expected" {
			t.Errorf("%s", a.text)
		}
	}
	s.want(s.send("tenant", "POST", "/v1/tasks:change-matching",
		`{"operation":"cancel","filter":{"affinity-prefix":"t2."},"expected":3}`), 409, "0 tasks match")
	s.want(s.send("viewer", "GET", "/v1/tasks?substatus=scheduled", nil), 200, `"t2.0"`)
	for _, c := range []struct {
		secret  string
		matched int
	}{{"tenant", 3}, {"operator", 3}, {"operator", 0}} {
		line := s.want(s.send(c.secret, "POST", "/v1/tasks:change-matching", ask(c.matched)), 200,
			`"done":true`).last(t)
		if line["matched"] != float64(c.matched) || line["changed"] != float64(c.matched) {
			t.Errorf("%v, want %d", line, c.matched)
		}
	}
}

// half is a cluster in which one shard does not answer.
type half struct{ operations.Direct }

func (half) Each(context.Context, task.Filter, task.Operation, bulk.Options) iter.Seq2[bulk.Report, error] {
	return func(yield func(bulk.Report, error) bool) {
		waits := bulk.Report{Matched: 3, Missing: []task.Missing{{Shard: 2, Silent: true}}, Cursor: "c"}
		for yield(waits, nil) {
		}
	}
}

func TestChangeMatching_WhoseTasksCannotBeCountedIsRefused(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) { c.Client = half{c.Client.(operations.Direct)} })
	s.want(s.send("operator", "POST", "/v1/tasks:change-matching",
		`{"operation":"cancel","filter":{"status":"CREATED"},"expected":3}`), 503, "shard 2 cannot be counted")
}
