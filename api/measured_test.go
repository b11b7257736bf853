package api_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"taskledger/api"
	"taskledger/api/measured"
	"taskledger/internal/testcluster"
)

// ledger of requests, as a watcher is told of them.
type watcher struct {
	mu  sync.Mutex
	all []measured.Request
}

// Answered implements measured.Watcher.
func (w *watcher) Answered(r measured.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, r)
}

// said waits for so many requests, and returns how many there were of each kind.
func (w *watcher) said(t *testing.T, n int) map[measured.Request]int {
	t.Helper()
	kinds := map[measured.Request]int{}
	testcluster.Await(t, "all requests", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.all) >= n
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.all {
		if r.Took <= 0 {
			t.Errorf("%+v took no time", r)
		}
		r.Took = 0
		kinds[r]++
	}
	return kinds
}

// Whoever watches is told of each request once, under the name of its route, whatever the path is that was asked for.
func TestWatch_IsToldOfEachRequestByItsRoute(t *testing.T) {
	told := &watcher{}
	s, _ := serve(t, func(c *api.Config) {
		c.Watch = told
		c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") })
	})
	for _, ask := range []struct{ token, method, path string }{
		{"viewer", "GET", "/v1/nodes"},
		{"viewer", "HEAD", "/v1/nodes"},
		{"", "GET", "/v1/health"},
		{"", "GET", "/v1/tasks/a"},
		{"nobody's", "GET", "/v1/tasks/b"},
		{"viewer", "DELETE", "/v1/tasks/c"},
		{"viewer", "GET", "/v1/tasks/d"},
		{"viewer", "GET", "/no/such/path"},
		{"viewer", "PATCH", "/v1/tasks"},
		{"viewer", "GET", "/v1/metrics"},
	} {
		s.send(ask.token, ask.method, ask.path, nil)
	}
	want := map[measured.Request]int{
		{Route: "GET /v1/nodes", Status: 200}:                               2,
		{Route: "GET /v1/health", Status: 200}:                              1,
		{Route: "GET /v1/tasks/{id}", Status: 401, Refused: "unauthorized"}: 2,
		{Route: "DELETE /v1/tasks/{id}", Status: 403, Refused: "forbidden"}: 1,
		{Route: "GET /v1/tasks/{id}", Status: 404, Refused: "not-found"}:    1,
		{Status: 404, Refused: "not-found"}:                                 1,
		{Status: 405, Refused: "method"}:                                    1,
		{Route: "GET /v1/metrics", Status: 500, Refused: "internal"}:        1,
	}
	if got := told.said(t, 10); !maps.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

func TestState_CountsWhatIsUnderWay(t *testing.T) {
	s, open := serve(t, nil)
	s.submit("submitter", "slow", "gate")
	if got := s.api.State(); got != (measured.State{}) {
		t.Errorf("while nobody asks: %+v", got)
	}
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() { s.send("viewer", "GET", "/v1/tasks/slow?wait=60s", nil) })
	}
	testcluster.Await(t, "three requests that wait", func() bool {
		return s.api.State() == measured.State{Requests: 3, Waits: 3}
	})
	open()
	asking.Wait()
	testcluster.Await(t, "the end of all requests", func() bool { return s.api.State() == measured.State{} })
}

// What the node measures is written at once, by the headers and the status that its handler gives it.
func TestMetrics_AreAnsweredAsTheirHandlerAnswers(t *testing.T) {
	whole := strings.Repeat("taskledger_up 1\n", 20_000) // larger than an answer that takes no bytes of the budget
	var text string
	s, _ := serve(t, func(c *api.Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			if text == "" {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write([]byte(text))
		})
	})
	s.want(s.send("viewer", "GET", "/v1/metrics", nil), 503, "")
	text = whole
	got := s.send("viewer", "GET", "/v1/metrics", nil)
	if got.status != 200 || got.text != whole ||
		!slices.Equal(got.header["Content-Type"], []string{"text/plain; version=0.0.4"}) {
		t.Errorf("status %d, %v, %d bytes", got.status, got.header, len(got.text))
	}
}
