package api_test

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRequest_BadInputNamesWhatIsWrong(t *testing.T) {
	s, _ := serve(t, nil)
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	flat := strings.Repeat("[", 62) + strings.Repeat("]", 62)
	large := `{"behavior":"noop","params":"` + strings.Repeat("x", 300<<10) + `"}`
	larger := `{"behavior":"noop","params":"` + strings.Repeat("x", 600<<10) + `"}`
	twice := `{"operation":"retry","filter":{"status":"FAILURE","status":"SUCCESS"}}`
	for _, c := range []struct {
		secret, method, path string
		body                 any
		status               int
		want                 string
	}{
		{"submitter", "POST", "/v1/tasks", ``, 400, "malformed"},
		{"submitter", "POST", "/v1/tasks", `{`, 400, "malformed"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop"} x`, 400, "malformed"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","colour":1}`, 400, `"field":"colour"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":7}`, 400, `"field":"behavior"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","ID":"a"}`, 400, `"field":"ID"`},
		{"submitter", "POST", "/v1/tasks:batch", `{"tasks":[{"behavior":"noop","id":"a","id":"b"}]}`, 400,
			`"field":"tasks[0].id"`},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"retry","ids":["a"],"ids":["b"]}`, 400, `"field":"ids"`},
		{"operator", "POST", "/v1/tasks:change-matching", twice, 400, `"field":"filter.status"`},
		{"operator", "POST", "/v1/behaviors/noop/pause", `{"Reason":"typed"}`, 400, `"field":"Reason"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","id":"a b"}`, 400, "task id"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","id":""}`, 400, `"field":"id"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","id":"cluster/settings"}`, 400, `"field":"id"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","priority":-1}`, 400, `"field":"priority"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","delay_ms":-1}`, 400, `"field":"delay_ms"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","not_before":"soon"}`, 400, "problem:invalid"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","not_before":"soon"}`, 400,
			`not_before: \"soon\": want a time such as 2026-`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","not_before":7}`, 400,
			"not_before: want a text, got the JSON type number"},
		{"submitter", "POST", "/v1/tasks:batch", `{"tasks":[{"behavior":"noop"}, {"behavior":"noop","not_before":"soon"}]}`,
			400, `tasks[1].not_before: \"soon\": want a time such as 2026-`},
		{"submitter", "POST", "/v1/tasks:batch", `{"tasks":[{"behavior":7}]}`, 400, "tasks[0].behavior: want a text"},
		{"submitter", "POST", "/v1/tasks:batch", `{"tasks":[7]}`, 400, "tasks[0]: want an object"},
		{"submitter", "POST", "/v1/tasks:batch", `{"tasks":null}`, 400, "tasks: want an array"},
		{"submitter", "POST", "/v1/tasks:batch", `{"tasks":?}`, 400, "body: invalid character '?'"},
		{"submitter", "POST", "/v1/tasks:batch", `null`, 400, `"field":"tasks"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"nobody"}`, 422, "unknown-behavior"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","params":` + deep + `}`, 400, "64 levels"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"nobody","params":` + flat + `}`, 422, "unknown-behavior"},
		{"submitter", "POST", "/v1/tasks", "{\"behavior\":\"no\xffop\"}", 400, "UTF-8"},
		{"submitter", "POST", "/v1/tasks", large, 413, "too-large"},
		{"submitter", "POST", "/v1/tasks", larger, 413, "too-large"},
		{"submitter", "POST", "/v1/tasks?wait=61s", `{"behavior":"noop"}`, 400, `"field":"wait"`},
		{"submitter", "POST", "/v1/tasks?wait=5", `{"behavior":"noop"}`, 400, `"field":"wait"`},
		{"submitter", "POST", "/v1/tasks?colour=1", `{"behavior":"noop"}`, 400, `"field":"colour"`},
		{"viewer", "GET", "/v1/tasks?limit=1001", nil, 400, `"field":"limit"`},
		{"viewer", "GET", "/v1/tasks?limit=1&limit=2", nil, 400, "more than once"},
		{"viewer", "GET", "/v1/tasks?status=done", nil, 400, `"field":"status"`},
		{"viewer", "GET", "/v1/tasks?cursor=x", nil, 400, `"field":"cursor"`},
		{"viewer", "GET", "/v1/tasks?created-to=1970-01-01T00:00:00Z", nil, 400, `"field":"created-to"`},
		{"viewer", "GET", "/v1/tasks?node=a", nil, 400, `"field":"node"`},
		{"viewer", "GET", "/v1/tasks?a=%zz", nil, 400, "malformed"},
		{"viewer", "GET", "/v1/journal", nil, 400, `"field":"task"`},
		{"viewer", "GET", "/v1/journal?task=a&shard=1", nil, 400, `"field":"task"`},
		{"viewer", "GET", "/v1/journal?task=none", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/journal?shard=x", nil, 400, `"field":"shard"`},
		{"viewer", "GET", "/v1/journal?shard=4", nil, 400, `"field":"shard"`},
		{"viewer", "GET", "/v1/journal?shard=0&from=0", nil, 400, `"field":"from"`},
		{"viewer", "GET", "/v1/journal?shard=0&limit=1001", nil, 400, `"field":"limit"`},
		{"viewer", "GET", "/v1/journal?shard=0&head=perhaps", nil, 400, `"field":"head"`},
		{"viewer", "GET", "/v1/journal?shard=0&archive=perhaps", nil, 400, `"field":"archive"`},
		{"viewer", "GET", "/v1/shards?figures=perhaps", nil, 400, `"field":"figures"`},
		{"submitter", "POST", "/v1/tasks:batch", `{"all_valid":1,"tasks":[]}`, 400, `"field":"all_valid"`},
		{"viewer", "GET", "/v1/export", nil, 400, `"field":"task"`},
		{"viewer", "GET", "/v1/export?task=a&shard=1", nil, 400, `"field":"task"`},
		{"viewer", "GET", "/v1/export?task=a%20b", nil, 400, `"field":"id"`},
		{"viewer", "GET", "/v1/export?task=none", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/export?shard=4", nil, 400, `"field":"shard"`},
		{"viewer", "GET", "/v1/export?shard=x", nil, 400, `"field":"shard"`},
		{"viewer", "GET", "/v1/metrics", nil, 404, "measures nothing"},
		{"viewer", "GET", "/v1/tasks/none", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/tasks/none?wait=1s", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/tasks/a%20b", nil, 400, `"field":"id"`},
		{"viewer", "GET", "/v1/tasks/a~b~c", nil, 400, `"field":"id"`},
		{"viewer", "GET", "/v1/tasks/a%2Fb%2Fc", nil, 400, `"field":"id"`},
		{"viewer", "GET", "/v1/tasks/..%2f..%2fopenapi.json", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/tasks/../nodes", nil, 404, "not-found"},
		{"viewer", "GET", "//v1/nodes", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/tasks/none%0d%0aX:y", nil, 400, `"field":"id"`},
		{"viewer", "GET", "/v1/tasks/" + strings.Repeat("x", 129), nil, 400, "limit of 128"},
		{"viewer", "GET", "/v1/tasks/none/history?order=up", nil, 400, `"field":"order"`},
		{"viewer", "GET", "/v1/tasks/none?seq=0", nil, 400, `"field":"seq"`},
		{"viewer", "GET", "/v1/tasks/none?seq=1&at=2026-01-01T00:00:00Z", nil, 400, `"field":"seq"`},
		{"viewer", "GET", "/v1/replay?from=noon", nil, 400, `"field":"from"`},
		{"viewer", "GET", "/v1/replay?kind=Paused,paused", nil, 400, `"field":"kind"`},
		{"viewer", "GET", "/v1/replay?from=1970-01-01T00:00:00Z", nil, 400, `"field":"from"`},
		{"viewer", "GET", "/v1/replay?to=1970-01-01T00:00:00Z", nil, 400, `"field":"to"`},
		{"viewer", "GET", "/v1/replay?to=0001-01-01T00:00:00Z", nil, 400, "want a time after 1970-01-01T00:00:00Z"},
		{"viewer", "GET", "/v1/tasks/none?at=1970-01-01T00:00:00Z", nil, 400, `"field":"at"`},
		{"viewer", "GET", "/v1/tasks/none?at=0001-01-01T00:00:00Z", nil, 400,
			"want a time after 1970-01-01T00:00:00Z"},
		{"viewer", "GET", "/nothing", nil, 404, "not-found"},
		{"viewer", "PATCH", "/v1/tasks", nil, 405, "method"},
		{"viewer", "BREW", "/v1/tasks/none", nil, 405, "method"},
		{"operator", "POST", "/v1/tasks/none/retry", `{"x":1}`, 400, "takes no body"},
		{"operator", "POST", "/v1/tasks/none/cancel", `{"reason":"` + strings.Repeat("x", 257) + `"}`, 400, "256"},
		{"operator", "POST", "/v1/behaviors/No/pause", `{}`, 400, `"field":"behavior"`},
		{"operator", "POST", "/v1/behaviors/no-such/pause", `{"reason":"typed"}`, 422, "unknown-behavior"},
		{"operator", "POST", "/v1/behaviors/no-such/pause", `{"force":1}`, 400, "force: want true or false"},
		{"submitter", "POST", "/v1/tasks", `[]`, 400, "body: want an object"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":7}`, 400, "behavior: want a text"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","priority":1.5}`, 400, "priority: want a whole number"},
		{"submitter", "POST", "/v1/tasks", ``, 400, "it is empty"},
		{"submitter", "POST", "/v1/tasks", large, 413, `"field":"params"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","not_before":"2100-01-01T00:00:00Z"}`, 400,
			`"field":"not_before"`},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"explode","ids":["a"]}`, 400, `"field":"operation"`},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"retry","ids":[]}`, 400, `"field":"ids"`},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"retry","ids":["a","a"]}`, 400, "more than once"},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"retry","ids":["a"],"reason":"x"}`, 400,
			`"field":"reason"`},
	} {
		begun := time.Now()
		got := s.send(c.secret, c.method, c.path, c.body)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("%s %.60s: answered after %s", c.method, c.path, took)
		}
		isProblem := got.header.Get("Content-Type") == "application/problem+json"
		if got.status != c.status || !strings.Contains(got.text, c.want) || !isProblem {
			t.Errorf("%s %.60s %.80v: %d, want %d and %q: %.300s",
				c.method, c.path, c.body, got.status, c.status, c.want, got.text)
		}
	}
	if got := s.send("viewer", "PATCH", "/v1/tasks/none", nil); got.header.Get("Allow") != "DELETE, GET, HEAD" {
		t.Errorf("Allow: %q", got.header.Get("Allow"))
	}
	post := func(path, body string, header ...string) answer {
		return s.send("submitter", "POST", path, body, header...)
	}
	one, many := `{"behavior":"noop"}`, `{"tasks":[{"behavior":"noop"}]}`
	s.want(post("/v1/tasks", one, "Content-Type", "text/plain"), 415, "media-type")
	s.want(post("/v1/tasks", one, "Idempotency-Key", ""), 400, "it is empty")
	s.want(post("/v1/tasks:batch", `{"tasks":[{"behavior":"noop","id":""}]}`), 200, `"field":"id"`)
	s.want(post("/v1/tasks:batch", many, "Idempotency-Key", ""), 400, "it is empty")
	s.want(post("/v1/tasks", one, "Idempotency-Key", "a", "Idempotency-Key", "b"), 400, "more than once")
	s.want(s.send("operator", "POST", "/v1/tasks/none/retry", nil, "If-Match", `W/"1"`), 400, "in quotes")
	s.want(s.send("operator", "POST", "/v1/tasks/none/retry", nil, "If-Match", `"1"`), 400, "version of a task")
	s.want(s.send("operator", "POST", "/v1/tasks:batch", `{"tasks":[]}`, "If-Match", `"1.1.0"`), 400, "not supported")
	s.want(s.send("operator", "POST", "/v1/behaviors/no-such/pause", `{"force":true}`), 204, "")
	s.want(s.send("operator", "POST", "/v1/behaviors/no-such/unpause", nil), 204, "")
	c := s.dial(t)
	_, _ = fmt.Fprintf(c, "GET /v1/tasks?%s HTTP/1.1\r\n", strings.Repeat("a=1&", 100_000)) // it is not read to its end
	if line, err := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, "431") {
		t.Errorf("100,000 parameters: %q, %v", line, err)
	}
}
