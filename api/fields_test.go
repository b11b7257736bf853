package api_test

import (
	"strings"
	"testing"
)

func TestRequest_BeyondALimitTellsFieldLimitAndGot(t *testing.T) {
	s, _ := serve(t, nil)
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		secret, method, path, body string
		field                      string
		limit, got                 float64
	}{
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","id":"` + x(129) + `"}`, "id", 128, 129},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"` + x(49) + `"}`, "behavior", 48, 49},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","delay_ms":315360000001}`,
			"delay_ms", 315360000000, 315360000001},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","delay_ms":-1}`, "delay_ms", 315360000000, -1},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","priority":9223372}`, "priority", 9223371, 9223372},
		{"viewer", "GET", "/v1/tasks/" + x(129), "", "id", 128, 129},
		{"viewer", "GET", "/v1/export?task=" + x(129), "", "id", 128, 129},
		{"viewer", "GET", "/v1/replay?behavior=" + x(49), "", "behavior", 48, 49},
		{"operator", "POST", "/v1/tasks/a/cancel", `{"reason":"` + x(257) + `"}`, "reason", 256, 257},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"cancel","ids":["a"],"reason":"` + x(257) + `"}`,
			"reason", 256, 257},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"retry","ids":["a","` + x(129) + `"]}`, "ids[1]", 128, 129},
		{"operator", "POST", "/v1/tasks:change-matching",
			`{"operation":"cancel","filter":{"behavior":"noop"},"reason":"` + x(257) + `"}`, "reason", 256, 257},
		{"operator", "POST", "/v1/behaviors/noop/pause", `{"reason":"` + x(257) + `"}`, "reason", 256, 257},
		{"operator", "POST", "/v1/behaviors/" + x(49) + "/pause", `{}`, "behavior", 48, 49},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		got := s.want(s.send(c.secret, c.method, c.path, body), 400, `"urn:taskledger:problem:limit"`)
		if got.get(t, "field") != c.field || got.get(t, "limit") != c.limit || got.get(t, "got") != c.got {
			t.Errorf("%s %.40s %.80s: %s, want %s, limit %v, got %v",
				c.method, c.path, c.body, got.text, c.field, c.limit, c.got)
		}
	}
}
