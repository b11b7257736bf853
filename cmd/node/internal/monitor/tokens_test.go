package monitor

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"taskledger/meter"
)

// Beyond loopback everybody learns whether the node lives and is ready, and only who shows a token the rest.
func TestServe_BeyondLoopbackFiguresAndReasonsAreForTokens(t *testing.T) {
	m := &Monitor{trusted: func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer viewer" }}
	figures := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "figures") })
	h := m.handler(figures, func() meter.Vitals { return meter.Vitals{} })
	for _, c := range []struct {
		path, token string
		status      int
		text        string
	}{
		{"/metrics", "", 401, "want a token"},
		{"/metrics", "other", 401, "want a token"},
		{"/metrics", "viewer", 200, "figures"},
		{"/healthz", "", 200, "ok"},
		{"/readyz", "", 503, "not ready"},
		{"/readyz", "viewer", 503, "not ready: the node has no session"},
	} {
		r := httptest.NewRequest("GET", c.path, nil)
		r.Host = "10.1.2.3:9464"
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got := w.Body.String()
		if w.Code != c.status || !strings.HasPrefix(got, c.text) || c.token == "" && strings.Contains(got, ":") {
			t.Errorf("%s with %q: status %d, %q", c.path, c.token, w.Code, got)
		}
	}
}
