package ui_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/ui"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/task"
)

// explained is a cluster with one task that waits.
type explained struct {
	*longLife
	why engine.Explanation
}

func (e explained) Explain(context.Context, events.TaskID) (engine.Explanation, error) {
	return e.why, nil
}

// The page of a task says of a time what happens at it.
func TestTask_TellsItsTimesProgressAndErrorInWords(t *testing.T) {
	l := newLongLife(t, 4)
	l.task.RecheckNotBefore, l.task.LostNotBefore = 1_700_000_000_000, 1_700_000_020_000
	l.task.Progress = &task.Progress{Done: 65, Note: "bucket 1"}
	l.task.Error = &events.Error{
		Code:       "odd",
		Properties: map[string]string{"stderr": strings.Repeat("w", 300), "stdout": ""},
	}
	s := serveClient(t, l, ui.Config{})
	got := s.want(s.get("viewer", "/ui/tasks/long~1"), 200,
		"<dt>Next sign of life by</dt>", "<dt>If its node is lost, runs again</dt>",
		"<dd>65, <bdi>bucket 1</bdi></dd>", `<dd tabindex="0"><bdi>www`, "<dd><bdi>(empty)</bdi></dd>")
	s.wantNot(got, "Looks again", "<dt>Runs again", "data-ms")
	l.task.Status, l.task.Substatus, l.task.Progress = task.Created, task.SubScheduled, &task.Progress{Done: 7}
	why := engine.Explanation{Why: "not-due", Since: 1_700_000_000_000, Text: "it is due at noon"}
	s = serveClient(t, explained{l, why}, ui.Config{})
	s.want(s.get("viewer", "/ui/tasks/long~1"), 200,
		"</strong>, waits <time data-since", "</time>: <bdi>it is due at noon</bdi>", "<dd>7</dd>")
}

// A drawing of less than ten seconds tells its ends to the millisecond.
func TestTask_TellsTheEndsOfAShortLifeExactly(t *testing.T) {
	var at clock
	s := serve(t, func(_ *api.Config, of *ui.Config) { of.Now = at.now })
	s.asleep("a/1")
	created := s.see("a/1").CreatedAt.Time().UTC()
	for _, c := range []struct {
		after time.Duration
		short bool
	}{{9999 * time.Millisecond, true}, {10 * time.Second, false}} {
		at.at = created.Add(c.after)
		got := s.want(s.get("viewer", "/ui/tasks/a~1"), 200, "<h2 id=\"timeline\">")
		exactly := "<span><time data-ms datetime=\"" + created.Format("2006-01-02T15:04:05.000Z")
		if strings.Contains(got.text, exactly) != c.short {
			t.Errorf("after %s: %s", c.after, clip(got.text))
		}
		shown := ">" + created.Format("2006-01-02 15:04:05.000") + " UTC</time>"
		if strings.Contains(got.text, shown) != c.short {
			t.Errorf("after %s there is no %s: %s", c.after, shown, clip(got.text))
		}
	}
}

// What took less than a millisecond has not taken nothing.
func TestBehaviors_TellATimeBelowAMillisecond(t *testing.T) {
	s := serve(t)
	f := meter.Figures{Behavior: "noop"}
	f.Times[meter.Duration].Add(0)
	f.Times[meter.Duration].Add(0)
	told := telling{operations.Direct{Client: s.node.Client}, []engine.ShardInfo{{Figures: []meter.Figures{f}}}}
	other := serveClient(t, told, ui.Config{})
	got := other.want(other.get("viewer", "/ui/behaviors"), 200, `data-label="Took">below 1 ms · `)
	other.wantNot(got, ">0 ms")
}

// The page of a login has its commands on lines of their own, after what a person comes for.
func TestLogin_TellsTheCommandsAfterItsButton(t *testing.T) {
	s := serve(t)
	page := s.want(s.get("", "/ui/login"), 200, `<pre tabindex="0">taskledger token new NAME --role viewer</pre>`).text
	if at := strings.Index(page, `<pre tabindex="0">taskledger ui</pre>`); at < strings.Index(page, "Log in</button>") {
		t.Errorf("the command stands at %d: %s", at, clip(page))
	}
}
