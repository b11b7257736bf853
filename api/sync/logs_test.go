package sync_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"taskledger/api/sync"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
)

// writes has a world in which a run has written lines, one a second from noon on.
func writes(t *testing.T, lines int) (w *world, s *server, path string) {
	w = newWorld()
	path = "/tasks/" + w.run("shop", "orders", 0, task.Running, task.SubRunning) + "/logs"
	for i := range lines {
		level := tasklog.Info
		if i%2 == 1 {
			level = tasklog.Error
		}
		l := tasklog.Line{At: noon + events.Millis(i)*1000, Level: level, Text: fmt.Sprintf("line %d", i)}
		w.lines = append(w.lines, tasklog.TaskLine{Attempt: 1, Number: uint64(i) + 1, Line: l})
	}
	return w, serve(t, w), path
}

func TestLogs_AreWholeWithoutALimitAndPagesWithOne(t *testing.T) {
	for _, n := range []int{0, 1, 3, 4, 10} {
		w, s, path := writes(t, n)
		var want []sync.Line
		for _, l := range w.lines {
			want = append(want, sync.Line{Time: l.At, Message: l.Text, Level: l.Level.String()})
		}
		var whole sync.Logs
		if s.read(path, &whole); !slices.Equal(whole.Logs, want) || whole.Cursor != "" {
			t.Errorf("%d lines: %+v", n, whole)
		}
		for limit := 1; limit <= 4; limit++ {
			var got []sync.Line
			page := sync.Logs{}
			for more := true; more; more = page.Cursor != "" {
				at := fmt.Sprintf("%s/?limit=%d&cursor=%s", path, limit, page.Cursor)
				page = sync.Logs{}
				s.read(at, &page)
				got = append(got, page.Logs...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d lines by pages of %d: %+v", n, limit, got)
			}
		}
	}
}

func TestLogs_HaveThreeKeysALine(t *testing.T) {
	_, s, path := writes(t, 2)
	const want = `{"logs":[{"time":"2026-11-28T12:00:00.000Z","message":"line 0","level":"info"},` +
		`{"time":"2026-11-28T12:00:01.000Z","message":"line 1","level":"error"}]}` + "\n"
	if a := s.want(s.ask("viewer", "GET", path), 200, ""); a.Body.String() != want {
		t.Errorf("%s", a.Body)
	}
}

func TestLogs_IncludeBothEndsOfTheirTime(t *testing.T) {
	w, s, path := writes(t, 10)
	var got sync.Logs
	s.read(path+"?start=2026-11-28T12:00:02Z&end=2026-11-28T12:00:06Z", &got)
	if len(got.Logs) != 5 || got.Logs[0].Time != noon+2000 || got.Logs[4].Time != noon+6000 {
		t.Errorf("%+v", got)
	}
	if s.read(path+"?start=2026-11-28T12:00:06Z&end=2026-11-28T12:00:02Z", &got); len(got.Logs) != 0 || got.Logs == nil {
		t.Errorf("end before start: %+v", got)
	}
	if s.read(path+"?end=1969-01-01T00:00:00Z", &got); len(got.Logs) != 0 {
		t.Errorf("an end before 1970: %+v", got)
	}
	s.read(path+"?start=1970-01-01T00:00:00Z", &got)
	if w.selected.Since != 0 || w.selected.Until != 0 || len(got.Logs) != 10 {
		t.Errorf("since 1970: %+v", w.selected)
	}
}

// That there is no log is said, never an empty list.
func TestLogs_ThatAreNotThereAreRefused(t *testing.T) {
	w, s, path := writes(t, 0)
	for _, c := range []struct {
		err    error
		status int
	}{
		{tasklog.ErrGone, 410},
		{tasklog.ErrNone, 503},
		{store.ErrUnavailable, 503},
		{context.DeadlineExceeded, 503},
		{&store.InvalidError{Field: "cursor", Problem: "is of another task"}, 400},
	} {
		w.fails = c.err
		for _, limit := range []string{"", "?limit=1"} {
			a := s.want(s.ask("viewer", "GET", path+limit), c.status, `"message":"`)
			if after := a.Header().Get("Retry-After"); (after != "") != (c.status == 503) || !json.Valid(a.Body.Bytes()) {
				t.Errorf("%v: Retry-After %q: %s", c.err, after, a.Body)
			}
		}
	}
}

// Of a run that retention has removed it is said that its log is gone, and not that there never was one.
func TestLogs_OfAForgottenRunAreGone(t *testing.T) {
	w, s, path := writes(t, 0)
	w.forgotten = append(w.forgotten, w.tasks[0].ID)
	w.tasks = nil
	for _, limit := range []string{"", "?limit=1"} {
		s.want(s.ask("viewer", "GET", path+limit), 410, "not-kept")
		s.want(s.ask("sleeper", "GET", path+limit), 404, "not-found")
	}
	w.forgotten = nil
	s.want(s.ask("viewer", "GET", path), 404, "not-found")
}
