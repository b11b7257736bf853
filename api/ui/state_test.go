package ui_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/api/apitest"
)

func TestState_IsThatAfterAnyEventAndAgreesWithTheAPI(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a/1", "{}")
	s.want(s.get("viewer", "/ui/tasks/a~1"), 200, `href="/ui/tasks/a~1/state?seq=1"`, `href="/ui/tasks/a~1/state"`)
	last := s.want(s.get("viewer", "/ui/tasks/a~1/state"), 200, "SUCCESS", `type="range"`, `min="1"`, "Succeeded",
		`changed, it was <span class="text">none</span>`)
	var n int
	if _, rest, has := strings.Cut(last.text, `min="1" max="`); !has {
		t.Fatal(clip(last.text))
	} else if _, err := fmt.Sscan(rest[:1], &n); err != nil || n < 3 {
		t.Fatal(n, err)
	}
	for seq := 1; seq <= n; seq++ {
		then := apitest.Ask(s.api, "viewer", "GET", fmt.Sprintf("/v1/tasks/a~1?seq=%d", seq), "")
		_, rest, _ := strings.Cut(then.Body.String(), `"status":"`)
		status, _, _ := strings.Cut(rest, `"`)
		got := s.want(s.get("viewer", fmt.Sprintf("/ui/tasks/a~1/state?seq=%d", seq)), 200, fmt.Sprintf("After event %d:", seq), status)
		if seq == 1 {
			s.wantNot(got, "<mark>")
		}
	}
	for _, wrong := range []string{"0", "-1", "x", "99", "18446744073709551616"} {
		s.want(s.get("viewer", "/ui/tasks/a~1/state?seq="+wrong), 400, "want a number of 1 to")
	}
	now := url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano))
	s.want(s.get("viewer", "/ui/tasks/a~1/state?at="+now), 200, "SUCCESS", "At ")
	s.want(s.get("viewer", "/ui/tasks/a~1/state?at=yesterday"), 400, `value="yesterday"`, "at")
	s.want(s.get("viewer", "/ui/tasks/a~1/state?at=2001-01-01T00:00:00Z"), 404, `value="2001-01-01T00:00:00Z"`)
	s.want(s.get("viewer", "/ui/tasks/a~1/state?seq=1&at="+now), 400, "or a time")
	s.want(s.get("viewer", "/ui/tasks/none/state"), 404)
}

func TestExport_IsThatOfTheAPI(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.submit("noop", "a/1", "{}")
	want := apitest.Ask(s.api, "viewer", "GET", "/v1/export?task=a~1", "").Body.String()
	got := s.want(s.get("viewer", "/ui/tasks/a~1/export"), 200)
	if got.text != want || !strings.Contains(got.header.Get("Content-Disposition"), `"a~1.jsonl"`) || len(want) < 100 {
		t.Errorf("%s, want %s", got.text, want)
	}
	s.want(s.get("viewer", "/ui/tasks/none/export"), 404)
	s.submit("fails", "large", fmt.Sprintf("%q", strings.Repeat("<", 200<<10)))
	for range 4 {
		s.want(s.do(s.get("operator", "/ui/tasks/large"), "large", "retry", ""), 303)
		s.node.Await(t, "large")
	}
	want = apitest.Ask(s.api, "viewer", "GET", "/v1/export?task=large", "").Body.String()
	if got := s.want(s.get("viewer", "/ui/tasks/large/export"), 200); got.text != want || len(want) < 1<<20 {
		t.Errorf("%d bytes, want %d", len(got.text), len(want))
	}
}

// unread is an answer whose reader does not read on until it is told to.
type unread struct {
	*httptest.ResponseRecorder
	begun, read chan struct{}
	first       sync.Once
}

func (u *unread) Write(data []byte) (int, error) {
	u.first.Do(func() { close(u.begun) })
	<-u.read
	return u.ResponseRecorder.Write(data)
}

// A principal has two streams.
func TestExport_TakesOneStreamOfItsPrincipal(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.submit("fails", "large", fmt.Sprintf("%q", strings.Repeat("<", 200<<10)))
	for range 4 {
		s.want(s.do(s.get("operator", "/ui/tasks/large"), "large", "retry", ""), 303)
		s.node.Await(t, "large")
	}
	u := &unread{ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{}), read: make(chan struct{})}
	r := httptest.NewRequest(http.MethodGet, "/v1/export?task=large", nil)
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer viewer")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.api.ServeHTTP(u, r)
	}()
	<-u.begun
	got := s.want(s.get("viewer", "/ui/tasks/large/export"), 200)
	if len(got.text) < 1<<20 {
		t.Errorf("%d bytes: %s", len(got.text), clip(got.text))
	}
	s.want(s.get("viewer", "/ui/shards/0/export"), 200)
	close(u.read)
	<-ended
}
