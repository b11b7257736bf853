package engine_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/events"
	"taskledger/task"
)

// logBook keeps what nodes log.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(b, nil)) }

// said returns the lines of a message: those about nodes, which every node logs, of node a alone.
func (b *logBook) said(t *testing.T, message string) (all []map[string]any) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range bytes.Lines(b.text.Bytes()) {
		var l map[string]any
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l["msg"] == message && (l["peer"] == nil || l["node"] == "a") {
			all = append(all, l)
		}
	}
	return all
}

// Whoever reads the logs learns, once and by name, who came, died and left, which attempt was lost with it, and
// which task failed for good.
func TestNotices_TellOfNodesLossesAndFinalFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, job, book := newModelled(t, true), newJob(task.Policy{}), new(logBook)
		with := func(slots int) func(*cfg) {
			return func(c *cfg) { c.Slots, c.Log = slots, book.logger() }
		}
		a := c.start("a", 0, with(-1), job)
		a.ready(t)
		b := c.start("b", 0, with(1), job)
		b.ready(t)
		job.submit(t, a, "x").Close()
		job.next(t)
		b.crash()
		d := c.start("d", 0, with(1), job)
		d.ready(t)
		again := job.next(t)
		again.ends <- task.Outcome{Err: &events.Error{Code: "broken", Message: "no luck"}}
		if _, err := a.Attach("x").Wait(within(t)); err == nil {
			t.Error("x has not failed")
		}
		d.stop()
		d.end()
		time.Sleep(2 * time.Second)
		c.nodes = c.nodes[:1]
		for message, want := range map[string]map[string]any{
			"an attempt was lost":    {"task": "x", "behavior": "job", "ran_on": "b"},
			"a task failed for good": {"task": "x", "behavior": "job", "ran_on": "d", "code": "broken", "error": "no luck"},
			"a node died":            {"peer": "b"},
			"a node left":            {"peer": "d"},
		} {
			lines := book.said(t, message)
			if len(lines) != 1 {
				t.Fatalf("%s: said %d times: %v", message, len(lines), lines)
			}
			for name, value := range want {
				if lines[0][name] != value {
					t.Errorf("%s: %s is %v, want %v", message, name, lines[0][name], value)
				}
			}
		}
		if came := book.said(t, "a node came"); len(came) != 2 || came[0]["peer"] != "b" {
			t.Errorf("a node came: %v", came)
		}
	})
}
