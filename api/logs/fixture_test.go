package logs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/logs"
	"taskledger/api/operations"
	"taskledger/api/view"
	"taskledger/events"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
	"taskledger/tasklog/tasklogtest"
)

var everybody = apitest.Everybody(nil)

// begin is the time of the line before line 1, whatever the attempt.
const begin = tasklogtest.Begin

// life names the life of each task.
const life events.Ref = 7

// world has tasks of the behavior work that write.
type world struct {
	store *memlog.Store
	asked chan struct{} // takes each question that finds nothing, unless it is nil

	mu       sync.Mutex
	attempts map[events.TaskID]uint32
	ended    bool     // all tasks have
	fails    error    // each question, once the task was found
	pages    int      // that are answered before questions fail
	cursors  []string // that were asked for
}

func newWorld() *world {
	return &world{store: memlog.New(), attempts: map[events.TaskID]uint32{}}
}

// set changes the world while requests are under way.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// write has an attempt of a task write lines of package tasklogtest, in batches whose first and last lines are given
// in pairs.
func (w *world) write(t *testing.T, id events.TaskID, attempt uint32, lines ...uint64) {
	t.Helper()
	w.set(func() { w.attempts[id] = max(w.attempts[id], attempt) })
	of := attemptOf(id, attempt)
	s, err := w.store.Read(t.Context(), of, tasklog.Range{})
	if err != nil {
		t.Fatal(err)
	}
	end := tasklog.End{Line: s.Last}
	if s.Last > 0 {
		t.Fatalf("attempt %d of %s has written", attempt, id)
	}
	for i := 0; i < len(lines); i += 2 {
		b := tasklogtest.Lines(lines[i], int(lines[i+1]-lines[i]+1))
		if end, err = w.store.Append(t.Context(), of, end, b); err != nil {
			t.Fatal(err)
		}
	}
}

func attemptOf(id events.TaskID, number uint32) tasklog.Attempt {
	return tasklog.Attempt{Shard: uint16(id.Shard(8)), Life: life, Number: number}
}

// Log implements operations.Logs.
func (w *world) Log(ctx context.Context, id events.TaskID, s tasklog.Selection) (told tasklog.Told, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	attempts, is := w.attempts[id]
	if !is {
		return told, fmt.Errorf("task %s: %w", id, task.ErrNotFound)
	}
	told.Behavior = "work"
	w.cursors = append(w.cursors, s.Cursor)
	if w.fails != nil && w.pages == 0 {
		return told, w.fails
	}
	w.pages--
	q := tasklog.Query{
		Shard: uint16(id.Shard(8)),
		Life:  life,
		Since: s.Since,
		Until: s.Until,
		Level: s.Level,
		Limit: s.Limit,
	}
	for n := uint32(1); n <= attempts; n++ {
		if s.Attempt == 0 || s.Attempt == n {
			q.Attempts = append(q.Attempts, tasklog.Begun{Number: n, At: begin})
		}
	}
	if q.After, err = tasklog.ParseCursor(s.Cursor, id, life); err != nil {
		return told, err
	}
	p, err := tasklog.ReadTask(ctx, w.store, q)
	told.Lines, told.More, told.Cursor, told.Ended = p.Lines, p.More, p.Next.Text(id, life), w.ended
	if len(p.Lines) == 0 && w.asked != nil {
		w.asked <- struct{}{}
	}
	return told, err
}

// server is an API with logs.
type server struct {
	t   *testing.T
	api *api.API
}

func serve(t *testing.T, of operations.Logs) *server {
	t.Helper()
	a, err := api.New(api.Config{
		Client:  operations.Direct{},
		Tokens:  everybody,
		Version: "test",
		Routes:  logs.Routes(of),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &server{t: t, api: a}
}

// get asks with a token for what lies below the tasks.
func (s *server) get(secret, path string) *httptest.ResponseRecorder {
	return s.ask(secret, "/v1/tasks/"+path)
}

func (s *server) ask(secret, path string) *httptest.ResponseRecorder {
	return apitest.Ask(s.api, secret, "GET", path, "")
}

// want fails unless an answer has a status and a part.
func (s *server) want(a *httptest.ResponseRecorder, status int, part string) *httptest.ResponseRecorder {
	s.t.Helper()
	return apitest.Want(s.t, a, status, part)
}

// page reads a page.
func (s *server) page(path string) (p logs.Page) {
	s.t.Helper()
	a := s.want(s.get("viewer", path), 200, `{"lines":[`)
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil {
		s.t.Fatalf("%s: %v", a.Body, err)
	}
	return p
}

// pages reads all lines, page by page.
func (s *server) pages(path string) (lines []view.LogLine, last logs.Page) {
	s.t.Helper()
	last = s.page(path)
	for lines = last.Lines; last.More; lines = append(lines, last.Lines...) {
		last = s.page(path + "&cursor=" + last.Cursor)
	}
	return lines, last
}

// told writes lines down by attempt and number, a gap with its size.
func told(lines []view.LogLine) string {
	var words []string
	for _, l := range lines {
		word := fmt.Sprintf("%d:%d", l.Attempt, l.Number)
		if l.Missing > 0 {
			word = fmt.Sprintf("%d:%d-%d", l.Attempt, l.Missing, l.Number)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
