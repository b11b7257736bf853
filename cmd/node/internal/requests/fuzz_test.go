package requests

import (
	"encoding/json"
	"testing"
)

// A line of a file of requests is refused, or is a request that can be sent.
func FuzzReadRequest(f *testing.F) {
	for _, line := range []string{`{"behavior":"noop"}`, `{"behavior":"sleep","params":{"duration":"1s"},"id":"a/b","key":"k","at":"2026-11-21T00:00:00Z","priority":7}`,
		`{"behavior":"noop","delay":"1h"}`, `{"behavior":"noop","parms":1}`, `{} {}`, `[`, ``} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		q, err := readRequest(line, false)
		if err != nil {
			return
		}
		if q.Name == "" || q.ID != "" && q.ID.Validate() != nil || q.Params != nil && !json.Valid(q.Params) {
			t.Errorf("%q is taken for %+v", line, q)
		}
	})
}
