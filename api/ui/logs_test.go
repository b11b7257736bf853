package ui_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/logs"
	"taskledger/api/ui"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
)

// written has the lines of one task; a cursor is how many were read.
type written struct {
	lines []string
	ended bool
	fails error
}

func (w *written) Log(_ context.Context, id events.TaskID, s tasklog.Selection) (told tasklog.Told, err error) {
	told.Behavior = "noop"
	if w.fails != nil || id != "a/1" {
		return told, fmt.Errorf("log of %s: %w", id, map[bool]error{true: w.fails, false: task.ErrNotFound}[w.fails != nil])
	}
	at, _ := strconv.Atoi(s.Cursor)
	rest := w.lines[at:]
	told.More = len(rest) > s.Limit
	for i, text := range rest[:min(len(rest), s.Limit)] {
		var l tasklog.TaskLine
		l.Attempt, l.Text, l.Number, l.At = 1, text, uint64(at+i+1), 1_700_000_000_123
		told.Lines = append(told.Lines, l)
	}
	told.Cursor, told.Ended = strconv.Itoa(at+len(told.Lines)), w.ended
	return told, nil
}

func TestLogs_ComeInPagesAndAsTheyAreWritten(t *testing.T) {
	w := &written{lines: []string{"<b>one</b>", "\u202etwo", "\x1b[31mred\x7f\u009b\u061c\r שלום\r\n\tמרחבא"}}
	s := serve(t, func(c *api.Config, _ *ui.Config) { c.Routes = append(c.Routes, logs.Routes(w)...) })
	s.submit("noop", "a/1", "{}")
	s.want(s.get("viewer", "/ui/tasks/a~1"), 200, `href="/ui/tasks/a~1/logs"`)
	got := s.want(s.get("viewer", "/ui/tasks/a~1/logs"), 200, "&lt;b&gt;one", `\u202etwo`,
		"2023-11-14T22:13:20.123Z", "data-live", "comes here", `\x1b[31mred\u007f\u009b\u061c\x0d שלום`+"\r\n\tמרחבא")
	s.wantNot(got, "<b>one", "Later lines", "\u202e", "\x1b", "\x7f", "\u009b", "\u061c")
	w.lines = append(w.lines, "three")
	s.want(s.get("viewer", "/ui/tasks/a~1/logs", "If-None-Match", got.header.Get("ETag")), 200, "three")
	for i := range 1500 {
		w.lines = append(w.lines, fmt.Sprint("line ", i))
	}
	s.want(s.get("viewer", "/ui/tasks/a~1/logs?level=&attempt=1"), 200, "Later lines", `/logs?attempt=1&amp;cursor=500"`)
	s.want(s.get("viewer", "/ui/tasks/a~1/logs?cursor=500"), 200, "From the beginning", "cursor=1000")
	end := s.want(s.get("viewer", "/ui/tasks/a~1/logs?end=true"), 303)
	to := end.header.Get("Location")
	if to != "/ui/tasks/a~1/logs?cursor=1500" {
		t.Error(to)
	}
	w.ended = true
	s.wantNot(s.want(s.get("viewer", to), 200, "line 1499", "nothing follows"), "Later lines", "line 1490<")
	s.want(s.get("viewer", "/ui/tasks/a~1/logs?level=loud"), 400, "level")
	s.want(s.get("viewer", "/ui/tasks/a~1/logs?attempt=x&level=error"), 400, "<li>attempt: ", `value="x"`, `aria-invalid="true"`,
		`<option value="error" selected>`)
	s.want(s.get("viewer", "/ui/tasks/none/logs"), 404)
	w.fails = store.ErrUnavailable
	s.want(s.get("viewer", "/ui/tasks/a~1/logs"), 200, "This page is not whole", "the log: ")
	if strings.Contains(to, "level") {
		t.Error("an empty parameter stays")
	}
}
