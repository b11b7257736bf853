package api_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/api"
)

func TestSubmit_AnswersTheOutcomeOrThatThereIsNoneYet(t *testing.T) {
	s, open := serve(t, nil)
	first := s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"gate","params":"x","id":"a/1"}`), 202,
		`"id":"a/1"`)
	if first.header.Get("Location") != "/v1/tasks/a~1" || first.header.Get("Retry-After") != "1" {
		t.Errorf("%v", first.header)
	}
	joined := s.want(s.send("submitter", "POST", "/v1/tasks?wait=10ms", `{"behavior":"gate","params":"x","id":"a/1"}`),
		202, `"joined":true`)
	if strings.Contains(joined.text, "status") && joined.get(t, "status") != nil && joined.get(t, "status") != "" {
		t.Errorf("a task without outcome: %s", joined.text)
	}
	waiting := make(chan answer)
	go func() {
		waiting <- s.send("submitter", "POST", "/v1/tasks?wait=30s", `{"behavior":"gate","params":"fail","id":"a/2"}`)
	}()
	open()
	s.want(<-waiting, 200, `"status":"FAILURE"`)
	s.want(s.send("submitter", "POST", "/v1/tasks?wait=30s", `{"behavior":"gate","params":"x","id":"a/1"}`), 200,
		`"result":"x"`)
	for _, path := range []string{"/v1/tasks/a~1", "/v1/tasks/a%2F1", "/v1/tasks/a~1?wait=5s"} {
		s.want(s.send("viewer", "GET", path, nil), 200, `"status":"SUCCESS"`)
	}
	s.want(s.send("submitter", "POST", "/v1/tasks?wait=5s", `{"behavior":"noop"}`), 200, `"status":"SUCCESS"`)
}

func TestSubmit_WhoAskedStandsInTheEvents(t *testing.T) {
	s, _ := serve(t, nil)
	parent := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got := s.want(s.send("submitter", "POST", "/v1/tasks?wait=5s", `{"behavior":"noop","id":"w"}`,
		"X-Request-Id", "r-1", "traceparent", parent), 200, "SUCCESS")
	if got.header.Get("X-Request-Id") != "r-1" {
		t.Errorf("%v", got.header)
	}
	s.want(s.send("viewer", "GET", "/v1/tasks/w/history", nil), 200, `"principal":"sam"`)
	s.want(s.send("viewer", "GET", "/v1/tasks/w/history", nil), 200, `"request_id":"r-1","traceparent":"`+parent+`"`)
	s.want(s.send("viewer", "GET", "/v1/tasks?creator=sam", nil), 200, `"id":"w"`)
	s.want(s.send("operator", "DELETE", "/v1/tasks/w", nil), 204, "")
	s.want(s.send("viewer", "GET", "/v1/replay", nil), 200, `"principal":"olga"`)
}

func TestSubmit_AKeyMakesARepetitionTheSameRequest(t *testing.T) {
	s, _ := serve(t, nil)
	ids := make([]string, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			got := s.send("submitter", "POST", "/v1/tasks?wait=10s", `{"behavior":"noop","params":{}}`,
				"Idempotency-Key", "k")
			if got.status != 200 {
				t.Errorf("%d: %s", got.status, got.text)
			}
			ids[i], _ = got.get(t, "id").(string)
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("ids %q", ids)
			break
		}
	}
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"noop","params":{},"priority":1}`,
		"Idempotency-Key", "k"), 422, "key-reused")
	other := s.want(s.send("operator", "POST", "/v1/tasks", `{"behavior":"noop","params":{}}`, "Idempotency-Key", "k"),
		202, "id")
	if other.get(t, "id") == ids[0] {
		t.Error("two principals share a key")
	}
	batch := `{"tasks":[{"behavior":"noop"},{"behavior":"noop"}]}`
	one := s.want(s.send("submitter", "POST", "/v1/tasks:batch", batch, "Idempotency-Key", "many"), 200, "id")
	two := s.want(s.send("submitter", "POST", "/v1/tasks:batch", batch, "Idempotency-Key", "many"), 200,
		`"repeated":true`)
	if strings.ReplaceAll(two.text, `,"joined":true,"repeated":true`, "") != one.text {
		t.Errorf("%s, then %s", one.text, two.text)
	}
	s.want(s.send("submitter", "POST", "/v1/tasks:batch", `{"tasks":[{"behavior":"noop"}]}`, "Idempotency-Key", "many"),
		422, "key-reused")
}

func TestSubmit_OfManyEachHasItsOwnOutcome(t *testing.T) {
	s, _ := serve(t, nil)
	got := s.want(s.send("submitter", "POST", "/v1/tasks:batch",
		`{"tasks":[{"behavior":"noop","id":"m/1"},{"behavior":"nobody"},{"behavior":"No!"},{"behavior":"noop","id":"a b"},{"behavior":"noop","id":"m/1"}]}`), 200, `"id":"m/1"`)
	var parts []string
	for _, item := range got.get(t, "tasks").([]any) {
		p, _ := item.(map[string]any)["problem"].(map[string]any)
		parts = append(parts, fmt.Sprint(p["type"]))
	}
	prefix := "urn:taskledger:problem:"
	want := []string{"<nil>", prefix + "unknown-behavior", prefix + "invalid", prefix + "invalid", "<nil>"}
	if fmt.Sprint(parts) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", parts, want)
	}
	var many []string
	for range 1000 {
		many = append(many, `{"behavior":"noop"}`)
	}
	thousand := s.want(s.send("submitter", "POST", "/v1/tasks:batch", `{"tasks":[`+strings.Join(many, ",")+`]}`), 200,
		"id")
	if strings.Contains(thousand.text, "problem") || strings.Count(thousand.text, `"id"`) != 1000 {
		t.Errorf("%.300s", thousand.text)
	}
	s.want(s.send("submitter", "POST", "/v1/tasks:batch",
		`{"tasks":[`+strings.Join(many, ",")+`,{"behavior":"noop"}]}`), 400, "want 1 to 1000")
	s.want(s.send("submitter", "POST", "/v1/tasks:batch", `{"tasks":[]}`), 400, "want 1 to 1000")
}

func TestGet_AnUnchangedTaskIsNotSentAgain(t *testing.T) {
	s, _ := serve(t, nil)
	s.want(s.send("submitter", "POST", "/v1/tasks?wait=5s", `{"behavior":"noop","id":"e"}`), 200, "SUCCESS")
	got := s.want(s.send("viewer", "GET", "/v1/tasks/e", nil), 200, "version")
	tag := got.header.Get("ETag")
	if tag == "" {
		t.Fatal("no ETag")
	}
	s.want(s.send("viewer", "GET", "/v1/tasks/e", nil, "If-None-Match", tag), 304, "")
	s.want(s.send("viewer", "GET", "/v1/tasks/e", nil, "If-None-Match", `W/"1.2.3"`), 200, "version")
	head := s.send("viewer", "HEAD", "/v1/tasks/e", nil)
	if head.status != 200 || head.text != "" || head.header.Get("ETag") != tag {
		t.Errorf("%+v", head)
	}
	s.want(s.send("viewer", "GET", "/v1/tasks/e?seq=1", nil), 200, `"status":"CREATED"`)
	s.want(s.send("viewer", "GET", "/v1/tasks/e?at=2001-01-01T00:00:00Z", nil), 404, "not-found")
}

func TestOperations_ChangeATask(t *testing.T) {
	s, open := serve(t, nil)
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"noop","id":"o","delay_ms":3600000}`), 202, `"id":"o"`)
	s.want(s.send("viewer", "GET", "/v1/tasks/o/explain", nil), 200, `"why":"scheduled"`)
	s.want(s.send("operator", "POST", "/v1/tasks/o/suspend", nil), 204, "")
	s.want(s.send("viewer", "GET", "/v1/tasks/o/explain", nil), 200, `"why":"suspended"`)
	s.want(s.send("operator", "POST", "/v1/tasks/o/resume", nil), 204, "")
	s.want(s.send("operator", "POST", "/v1/tasks/o/retry", nil), 409, "state")
	s.want(s.send("operator", "POST", "/v1/tasks/o/cancel", `{"reason":"no longer wanted"}`), 204, "")
	s.want(s.send("viewer", "GET", "/v1/tasks/o/history?order=newest&limit=1", nil), 200, "no longer wanted")
	s.want(s.send("operator", "POST", "/v1/tasks:change", `{"operation":"delete","ids":["o","none"]}`), 200,
		`[{"id":"o"},{"id":"none","problem"`)
	s.want(s.send("operator", "POST", "/v1/behaviors/gate/pause", `{"reason":"repairs"}`), 204, "")
	s.want(s.send("viewer", "GET", "/v1/behaviors", nil), 200, "repairs")
	s.submit("submitter", "p", "gate")
	s.want(s.send("viewer", "GET", "/v1/tasks/p/explain", nil), 200, `"why":"paused"`)
	s.want(s.send("operator", "POST", "/v1/behaviors/gate/unpause", nil), 204, "")
	open()
	s.want(s.send("viewer", "GET", "/v1/tasks/p?wait=30s", nil), 200, "SUCCESS")
	s.want(s.send("viewer", "GET", "/v1/nodes", nil), 200, `"node":"a"`)
	s.want(s.send("viewer", "GET", "/v1/shards", nil), 200, `"shards":[{`)
	s.want(s.send("viewer", "GET", "/v1/checkpoint", nil), 200, "heads")
}

// A task that is repeated is never final, and each of its runs has an outcome.
func TestGet_OfARepeatedTaskWaitsForTheOutcomeOfItsRun(t *testing.T) {
	s, open := serve(t, func(c *api.Config) { c.Limits.InFlight = 1 })
	s.submit("submitter", "h", "hourly")
	waiting := make(chan answer)
	go func() {
		a := s.send("viewer", "GET", "/v1/tasks/h?wait=60s", nil)
		for a.status == http.StatusTooManyRequests { // while the question below is under way
			a = s.send("viewer", "GET", "/v1/tasks/h?wait=60s", nil)
		}
		waiting <- a
	}()
	for s.send("viewer", "GET", "/v1/tasks/h", nil).status != http.StatusTooManyRequests { // until it waits
	}
	open()
	for {
		select {
		case a := <-waiting:
			s.want(a, 200, `"status":"SUCCESS","substatus":"scheduled"`)
			return
		case <-time.After(5 * time.Second): // it has asked after the first run, so it waits for the second
			if err := s.node.Operations().RunNow(t.Context(), "h"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What waits ends when the server does, with what it knows: nothing was refused.
func TestServe_DrainEndsWhatWaitsFirst(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) { c.Limits.InFlight = 2 })
	s.submit("submitter", "d", "gate")
	answers := make(chan answer, 2)
	for _, ask := range [][2]string{{"GET", "/v1/tasks/d?wait=60s"}, {"POST", "/v1/tasks?wait=60s"}} {
		go func() {
			var body any
			if ask[0] == "POST" {
				body = `{"behavior":"gate","id":"d","params":"x"}`
			}
			a := s.send("operator", ask[0], ask[1], body)
			for a.status == http.StatusTooManyRequests { // while the question below is under way
				a = s.send("operator", ask[0], ask[1], body)
			}
			answers <- a
		}()
	}
	for s.send("operator", "GET", "/v1/tasks/d", nil).status != http.StatusTooManyRequests { // until both wait
	}
	silent, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")) // it asks nothing, and holds up nobody
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	begun := time.Now()
	s.stop()
	for range 2 {
		if a := <-answers; a.status != http.StatusAccepted {
			t.Errorf("%d %s", a.status, a.text)
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("drained after %s", took)
	}
}
