package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
)

// Whoever sends a header that does nothing would believe that it does.
func TestRequest_RefusesHeadersThatWouldDoNothing(t *testing.T) {
	s, _ := serve(t, nil)
	s.submit("submitter", "x", "gate")
	change := `{"operation":"suspend","ids":["x"]}`
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/tasks/x/retry", ""},
		{"POST", "/v1/tasks/x/cancel", `{"reason":"why"}`},
		{"POST", "/v1/tasks:change", change},
		{"POST", "/v1/tasks:change-matching", `{"operation":"cancel","filter":{"id":"x"}}`},
		{"POST", "/v1/behaviors/gate/pause", ""},
		{"DELETE", "/v1/tasks/x", ""},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		got := s.want(s.send("operator", c.method, c.path, body, "Idempotency-Key", "k"), 400, "done again")
		if got.get(t, "field") != "Idempotency-Key" {
			t.Errorf("%s %s: %s", c.method, c.path, got.text)
		}
		s.want(s.send("operator", c.method, c.path, body, "If-None-Match", "*"), 400, "If-None-Match")
	}
	s.want(s.send("viewer", "GET", "/v1/tasks/x", nil, "Idempotency-Key", "k"), 200, "RUNNING")
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"noop","params":{}}`, "If-None-Match", "*"), 400,
		"If-None-Match")
}

func TestBody_IsJSONInUTF8AndNotEncoded(t *testing.T) {
	s, _ := serve(t, nil)
	body := `{"behavior":"noop","params":{}}`
	for _, typed := range []string{
		"application/json; charset=utf-16",
		"application/json; charset=latin1",
		"text/plain",
	} {
		s.want(s.send("submitter", "POST", "/v1/tasks", body, "Content-Type", typed), 415, "media-type")
	}
	s.want(s.send("submitter", "POST", "/v1/tasks", body, "Content-Encoding", "gzip"), 415, "not encoded")
	s.want(s.send("submitter", "POST", "/v1/tasks", "\ufeff"+body), 400, "byte order mark")
	s.want(s.send("submitter", "POST", "/v1/tasks", body, "Content-Type", "application/json; charset=UTF-8",
		"Content-Encoding", "identity"), 202, "id")
}

func TestBody_AnEmptyObjectIsNone(t *testing.T) {
	s, _ := serve(t, nil)
	s.submit("submitter", "x", "gate")
	for _, body := range []string{"{}", " {} \n", ""} {
		s.want(s.send("operator", "POST", "/v1/tasks/x/resume", body), 204, "")
	}
	for _, body := range []string{"{", "[]", `{"reason":"x"}`, "{}" + strings.Repeat(" ", 99)} {
		s.want(s.send("operator", "POST", "/v1/tasks/x/resume", body), 400, "takes no body")
	}
}

func TestSuspend_TellsItsReason(t *testing.T) {
	s, _ := serve(t, nil)
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"noop","id":"x","delay_ms":3600000}`), 202, "")
	s.want(s.send("operator", "POST", "/v1/tasks/x/suspend", `{"reason":"the disk is full"}`), 204, "")
	s.want(s.send("viewer", "GET", "/v1/tasks/x/history", nil), 200, `"reason":"the disk is full"`)
	s.want(s.send("viewer", "GET", "/v1/tasks/x/explain", nil), 200, `olga suspended the task: the disk is full`)
	long := strings.Repeat("x", 257)
	s.want(s.send("operator", "POST", "/v1/tasks/x/suspend", `{"reason":"`+long+`"}`), 400, "limit of 256")
	for _, verb := range []string{"suspend", "cancel"} {
		change := `{"operation":"` + verb + `","ids":["x"],"reason":"` + long + `"}`
		s.want(s.send("operator", "POST", "/v1/tasks:change", change), 400, "limit of 256")
	}
	s.want(s.send("operator", "POST", "/v1/tasks:change", `{"operation":"suspend","ids":["x"],"reason":"again"}`), 200,
		`"id":"x"`)
	s.want(s.send("operator", "POST", "/v1/tasks:change", `{"operation":"resume","ids":["x"],"reason":"why"}`), 400,
		"alone")
}

func TestGet_IsNotModifiedByItsWholeTagAlone(t *testing.T) {
	s, _ := serve(t, nil)
	s.submit("submitter", "x", "gate")
	tag := s.want(s.send("viewer", "GET", "/v1/tasks/x", nil), 200, "RUNNING").header.Get("ETag")
	for match, want := range map[string]int{
		tag:                           304,
		strings.TrimPrefix(tag, "W/"): 304,
		`"other", ` + tag:             304,
		"*":                           304,
		"x" + tag:                     200,
		tag + "x":                     200,
		`"other"`:                     200,
	} {
		if got := s.send("viewer", "GET", "/v1/tasks/x", nil, "If-None-Match", match); got.status != want {
			t.Errorf("%s: %d, want %d", match, got.status, want)
		}
	}
}

func TestSubmit_TellsTheLimitOfADelay(t *testing.T) {
	s, _ := serve(t, nil)
	for body, want := range map[string]string{
		`{"behavior":"noop","delay_ms":315360000001}`:             "delay_ms: 315360000001 exceeds the limit of 315360000000",
		`{"behavior":"noop","not_before":"9999-01-01T00:00:00Z"}`: "not_before: 9999-01-01T00:00:00Z: want ten years ahead at most",
		`{"behavior":"noop","params":{},"id":".."}`:               "id: task id",
		`{"behavior":"noop","params":{},"priority":99999999}`:     "priority: ",
		`{"behavior":"no such","params":{}}`:                      "behavior: ",
	} {
		got := s.want(s.send("submitter", "POST", "/v1/tasks", body), 400, "")
		if detail, _ := got.get(t, "detail").(string); !strings.Contains(detail, want) {
			t.Errorf("%s: %q, want %q", body, detail, want)
		}
	}
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"noop","params":{},"delay_ms":315360000000}`), 202,
		"id")
}

// A name that is mistyped is refused by either.
func TestUnpause_RefusesABehaviorThatNobodyHas(t *testing.T) {
	s, _ := serve(t, nil)
	s.want(s.send("operator", "POST", "/v1/behaviors/nobody/unpause", nil), 422, "unknown-behavior")
	s.want(s.send("operator", "POST", "/v1/behaviors/nobody/pause", nil), 422, "unknown-behavior")
	s.want(s.send("operator", "POST", "/v1/behaviors/nobody/pause", `{"force":true}`), 204, "")
	s.want(s.send("operator", "POST", "/v1/behaviors/nobody/unpause", nil), 204, "")
	s.want(s.send("operator", "POST", "/v1/behaviors/gate/unpause", nil), 204, "")
}

// A subscriber in any language fills the gap that its absence has left.
func TestReplay_GoesOnAfterPositions(t *testing.T) {
	s, _ := serve(t, nil)
	s.want(s.send("submitter", "POST", "/v1/tasks?wait=30s", `{"behavior":"noop","id":"a/first"}`), 200, "SUCCESS")
	last := map[string]string{} // by shard
	for line := range strings.Lines(s.want(s.send("viewer", "GET", "/v1/replay", nil), 200, `"task":"a/first"`).text) {
		var ev struct{ Position string }
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatal(err)
		}
		shard, _, _ := strings.Cut(ev.Position, ".")
		last[shard] = ev.Position
	}
	after := strings.Join(slices.Collect(maps.Values(last)), ",")
	s.want(s.send("submitter", "POST", "/v1/tasks?wait=30s", `{"behavior":"noop","id":"a/second"}`), 200, "SUCCESS")
	got := s.want(s.send("viewer", "GET", "/v1/replay?after="+after, nil), 200, `"kind":"Succeeded"`).text
	if strings.Contains(got, `"a/first"`) || !strings.Contains(got, `"task":"a/second"`) {
		t.Errorf("after %s: %s", after, got)
	}
	shard := fmt.Sprint(events.TaskID("a/second").Shard(4))
	both := "/v1/replay?from=2999-01-01T00:00:00Z&after=" + last[shard]
	// A time to begin with counts for the shards alone that no position names.
	for line := range strings.Lines(s.want(s.send("viewer", "GET", both, nil), 200, `"kind":"Succeeded"`).text) {
		if !strings.Contains(line, `"position":"`+shard+`.`) || !strings.Contains(line, `"task":"a/second"`) {
			t.Errorf("from a time to come, and after %s: %s", last[shard], line)
		}
	}
	s.want(s.send("viewer", "GET", "/v1/replay?after=0.1", nil), 400, "want shard.entry.index")
	told := s.want(s.send("viewer", "GET", "/v1/replay?kind=Created,Started", nil), 200, `"kind":"Created"`)
	for line := range strings.Lines(told.text) {
		if strings.Contains(line, `"kind":"Succeeded"`) {
			t.Errorf("not asked for: %s", line)
		}
	}
	s.want(s.send("viewer", "GET", "/v1/replay?after=0.99999.0", nil), 400, "not written yet")
}

func TestReplay_RefusesATimeThatEndsBeforeItBegins(t *testing.T) {
	s, _ := serve(t, nil)
	s.want(s.send("viewer", "GET", "/v1/replay?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", nil), 400,
		"to: 2026-01-01T00:00:00Z is before from")
}
