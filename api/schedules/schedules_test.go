package schedules_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestSet_MakesAndChangesAndLeavesWhatIsEqual(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const path = "/v1/schedules/nightly"
	made := s.want(s.send("submitter", "PUT", path, never("noop")), 201, `"changed":true`)
	tag := made.Header().Get("ETag")
	shown := s.want(s.send("viewer", "GET", path, ""), 200, `"set_by":"sam"`)
	if shown.Header().Get("ETag") != tag || tag != fmt.Sprintf("%q", fmt.Sprintf("%.0f", made.get(t, "version"))) {
		t.Errorf("tags %s and %s, version %v", tag, shown.Header().Get("ETag"), made.get(t, "version"))
	}
	s.want(s.send("submitter", "PUT", path, never("noop"), "If-Match", tag), 200, `"changed":false`)
	other := strings.Replace(never("noop"), `{"cron"`, `{"overlap":"allow","cron"`, 1)
	s.want(s.send("submitter", "PUT", path, other, "If-Match", tag), 200, `"changed":true`)
	for _, late := range []answer{
		s.send("submitter", "PUT", path, never("noop"), "If-Match", tag),
		s.send("operator", "DELETE", path, "", "If-Match", tag),
		s.send("operator", "POST", path+"/pause", "", "If-Match", tag),
		s.send("submitter", "PUT", "/v1/schedules/none", never("noop"), "If-Match", tag),
	} {
		s.want(late, 412, "problem:changed")
	}
	for _, wrong := range []string{`*`, `W/` + tag, `"x"`, `"0"`, tag + "," + tag, `1`} {
		got := s.want(s.send("operator", "DELETE", path, "", "If-Match", wrong), 400, "")
		if got.get(t, "field") != "If-Match" {
			t.Errorf("%s: %s", wrong, got.Body)
		}
	}
	s.want(s.send("viewer", "GET", path, "", "If-Match", tag), 400, "not supported")
	s.want(s.send("viewer", "GET", path, ""), 200, `"overlap":"allow"`)
	s.want(s.send("operator", "DELETE", path, ""), 204, "")
	s.want(s.send("viewer", "GET", path, ""), 404, "not-found")
}

func TestRequest_NamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("a", never("noop"))
	for _, c := range []struct {
		method, path, body string
		status             int
		field              string
	}{
		{"PUT", "/a", `{"cron":"0 0 3 * *","behavior":"noop"}`, 400, "cron"},
		{"PUT", "/a", `{"cron":"@daily","behavior":"noop","grace":"2x"}`, 400, "grace"},
		{"PUT", "/a", `{"cron":"@daily","behavior":"noop","start":"today"}`, 400, "start"},
		{"PUT", "/a", `{"cron":"@daily","behavior":"noop","crom":1}`, 400, "crom"},
		{"PUT", "/a", `{"cron":"@daily","behavior":"noop","Keep":1}`, 400, "Keep"},
		{"PUT", "/a", `{"cron":"@daily","behavior":"noop","keep":1001}`, 400, "keep"},
		{"PUT", "/a", `{"cron":"@daily","behavior":"noop","timezone":"Atlantis"}`, 400, "timezone"},
		{"PUT", "/a", `{"cron":"@daily"}`, 400, "behavior"},
		{"PUT", "/a", `{"behavior":"noop","jitter":"5s"}`, 400, "jitter"},
		{"PUT", "/a", `{"cron":"","behavior":"noop","end":"2030-01-01T00:00:00Z"}`, 400, "end"},
		{"PUT", "/a", `{"behavior":"noop","uuids":true}`, 400, "uuids"},
		{"PUT", "/store:a", `{"cron":"@daily","behavior":"noop"}`, 400, "name"},
		{"GET", "/a/next?n=0", "", 400, "n"},
		{"GET", "?limit=101", "", 400, "limit"},
		{"GET", "?after=" + strings.Repeat("a", 65), "", 400, "after"},
		{"POST", "/a/pause", `{"reason":"` + strings.Repeat("x", 257) + `"}`, 400, "reason"},
		{"POST", "/a/backfill", `{"from":"2026-01-01T00:00:00Z"}`, 400, "to"},
		{"POST", "/a/backfill", `{"to":"2026-01-01T00:00:00Z"}`, 400, "from"},
		{"POST", "/a/backfill", `{"from":"2026-01-01T00:00:00Z","to":"2999-01-01T00:00:00Z"}`, 400, "to"},
	} {
		got := s.want(s.send("operator", c.method, "/v1/schedules"+c.path, c.body), c.status, "")
		if got.get(t, "field") != c.field {
			t.Errorf("%s %s %s: %s, want the field %s", c.method, c.path, c.body, got.Body, c.field)
		}
	}
	nobodys := `{"cron":"@daily","behavior":"nobody"}`
	s.want(s.send("operator", "PUT", "/v1/schedules/a", nobodys), 422, "unknown-behavior")
	s.want(s.send("operator", "POST", "/v1/schedules/none/run", ""), 404, "not-found")
	s.want(s.send("operator", "POST", "/v1/schedules/a/resume", "", "Idempotency-Key", "k"), 400, "takes none")
}

func TestNext_TellsTheTicksToCome(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("a", never("noop"))
	const two = `{"next":["2100-01-01T03:00:00.000Z","2101-01-01T03:00:00.000Z"`
	s.want(s.send("viewer", "GET", "/v1/schedules/a/next", ""), 200, two+`,"2102-01-01T03:00:00.000Z"]}`)
	s.want(s.send("viewer", "GET", "/v1/schedules/a/next?n=2", ""), 200, two+`]}`)
}

func TestRun_IsMadeOnceForAKeyAndSharedMeanwhile(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("a", never("sleep"))
	s.want(s.send("operator", "POST", "/v1/schedules/a/pause", `{"reason":"the disk is full"}`), 204, "")
	s.want(s.send("viewer", "GET", "/v1/schedules/a", ""), 200, `"by":"olga","reason":"the disk is full"`)
	const run = "/v1/schedules/a/run"
	first := s.want(s.send("submitter", "POST", run, "", "Idempotency-Key", "k"), 202, `"id":"a/run:`)
	again := s.want(s.send("submitter", "POST", run, "", "Idempotency-Key", "k"), 202, `"joined":true`)
	other := s.want(s.send("submitter", "POST", run, ""), 202, `"joined":true`)
	if id := first.get(t, "id"); again.get(t, "id") != id || other.get(t, "id") != id || first.get(t, "joined") != nil {
		t.Errorf("runs %s%s%s", first.Body, again.Body, other.Body)
	}
	s.want(s.send("viewer", "GET", first.Header().Get("Location"), ""), 200, `"behavior":"sleep"`)
	s.want(s.send("submitter", "POST", "/v1/schedules/a/resume", "{}"), 204, "")
	if got := s.send("viewer", "GET", "/v1/schedules/a", ""); got.get(t, "paused") != nil {
		t.Errorf("resumed: %s", got.Body)
	}
}

func TestSet_WithoutCronMakesOneThatRunsByHandAlone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const path = "/v1/schedules/idle"
	s.want(s.send("submitter", "PUT", path, `{"behavior":"noop","keep":3}`), 201, `"changed":true`)
	if got := s.send("viewer", "GET", path, ""); got.get(t, "next") != nil || strings.Contains(got.Body.String(), "cron") {
		t.Errorf("%s", got.Body)
	}
	s.want(s.send("viewer", "GET", path+"/next", ""), 200, `{"next":[]}`)
	s.want(s.send("submitter", "POST", path+"/run", ""), 202, `"id":"idle/run:`)
	const body = `{"from":"2026-01-01T00:00:00Z","to":"2026-01-01T02:00:00Z"}`
	s.want(s.send("submitter", "POST", path+"/backfill", body), 400, `"field":"cron"`)
}

func TestBackfill_IsOneAtATimeAndCanBeEnded(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("a", `{"cron":"0 0 0-2 1 1 ? 2026,2100","behavior":"sleep","params":{"duration":"1h"}}`)
	const path, body = "/v1/schedules/a/backfill", `{"from":"2026-01-01T00:00:00Z","to":"2026-01-01T02:00:00Z"}`
	s.want(s.send("operator", "DELETE", path, ""), 409, "state")
	s.want(s.send("submitter", "POST", path, body), 200, `{"ticks":3}`)
	s.want(s.send("submitter", "POST", path, body), 409, "under way")
	s.want(s.send("operator", "DELETE", path, ""), 204, "")
	s.want(s.send("submitter", "POST", path, body), 200, `{"ticks":3}`)
}

// The body of the largest definition is read, and a larger one is not.
func TestSet_TakesTheLargestParameters(t *testing.T) {
	t.Parallel()
	s := serve(t)
	definition := func(bytes int) string {
		spaces := strings.Repeat(" ", bytes-len(`{}`))
		return `{"cron":"0 0 3 1 1 ? 2100","behavior":"noop","params":{` + spaces + `}}`
	}
	s.want(s.send("operator", "PUT", "/v1/schedules/a", definition(62<<10)), 201, "")
	s.want(s.send("operator", "PUT", "/v1/schedules/a", definition(62<<10+1)), 400, `"field":"params"`)
	s.want(s.send("operator", "PUT", "/v1/schedules/a", definition(200<<10)), 413, "too-large")
}
