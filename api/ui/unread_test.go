package ui_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api/ui"
	"taskledger/events"
	"taskledger/task"
)

// vast is a cluster of a task that is as large as all answers of a principal may be, and of a list whose page is large.
type vast struct{ silent }

func (vast) Get(_ context.Context, id events.TaskID) (task.Task, error) {
	params := json.RawMessage(`"` + strings.Repeat("x", 12<<20) + `"`)
	return task.Task{ID: id, Behavior: "sleep", Status: task.Running, Substatus: task.SubRunning, Params: params}, nil
}

func (vast) ListPage(context.Context, task.Filter, string) (task.Page, error) {
	t := task.Task{ID: "a/1", Behavior: "sleep", Status: task.Failure, Substatus: task.SubFinal}
	t.Error = &events.Error{Code: "quotes", Message: strings.Repeat(`"`, 500)} // a page writes each as &#34;
	page := task.Page{Through: true}
	for range 50 {
		page.Tasks = append(page.Tasks, t)
	}
	return page, nil
}

// Answers that nobody reads take all bytes, and a page waits for some no longer than its time.
func TestPages_ComeWithinFiveSecondsWhereLargeAnswersTakeAllBytes(t *testing.T) {
	const path = "/ui/tasks?column=error"
	for name, takers := range map[string][]string{
		"of one": {"admin"},
		"of all": {"viewer", "submitter", "operator", "sleeper"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveClient(t, vast{}, ui.Config{})
				read := make(chan struct{})
				var taking sync.WaitGroup
				for _, who := range takers {
					r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/tasks/a", nil)
					r.Host = "localhost"
					r.Header.Set("Authorization", "Bearer "+who)
					w := &unread{ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{}), read: read}
					taking.Go(func() { s.api.ServeHTTP(w, r) })
				}
				synctest.Wait()
				began := time.Now()
				got := s.want(s.get("admin", path), http.StatusServiceUnavailable, "too many large answers are not read yet")
				if tag := got.header.Get("ETag"); tag != "" {
					t.Errorf("a browser may take the page that was not sent, %s, for this one", tag)
				}
				if took := time.Since(began); took > 5*time.Second || took == 0 {
					t.Errorf("%s takes %s: %s", path, took, clip(got.text))
				}
				close(read)
				taking.Wait()
				if got := s.want(s.get("admin", path), 200, "quotes"); len(got.text) <= 64<<10 {
					t.Errorf("the page has %d bytes, so it needs none of others", len(got.text))
				}
			})
		})
	}
}
