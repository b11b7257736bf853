package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"taskledger/api"
)

// Whoever polls a task that runs for long does so again and again.
func TestWait_ThatEndsEarlyLeavesNoFutureBehind(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) { c.Limits = api.Limits{PerSecond: 1e9, Burst: 1e9} })
	s.submit("submitter", "long", "gate")
	ask := func(method, target, body string) {
		t.Helper()
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Authorization", "Bearer submitter")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if s.api.ServeHTTP(w, r); w.Code != http.StatusAccepted {
			t.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
	}
	for range 10_000 {
		ask("GET", "/v1/tasks/long?wait=1us", "")
	}
	for range 10 {
		ask("POST", "/v1/tasks?wait=1us", `{"behavior":"gate","id":"long","params":"x"}`)
	}
	if n := s.node.Vitals().FuturesOpen; n != 0 {
		t.Errorf("%d futures wait still", n)
	}
}

// Two that wait for one task are two.
func TestVitals_CountEveryOpenFuture(t *testing.T) {
	s, _ := serve(t, nil)
	s.submit("submitter", "long", "gate")
	one, other := s.node.Attach("long"), s.node.Attach("long")
	one.Done()
	other.Done()
	for _, want := range []struct {
		open  int
		close func()
	}{{2, one.Close}, {1, one.Close}, {1, other.Close}, {0, func() {}}} {
		if n := s.node.Vitals().FuturesOpen; n != want.open {
			t.Errorf("%d futures are open, want %d", n, want.open)
		}
		want.close()
	}
}
