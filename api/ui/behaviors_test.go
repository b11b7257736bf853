package ui_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/ui"
	"taskledger/api/ui/trend"
	"taskledger/events"
	"taskledger/task"
)

func TestBehaviors_OfAnEmptyClusterAreThoseThatNodesRun(t *testing.T) {
	s := serve(t)
	s.want(s.get("viewer", "/ui/behaviors"), 200, "noop", "sleep", "Nothing was done.")
	s.wantNot(s.get("tenant", "/ui/behaviors"), "noop")
	s.want(s.get("tenant", "/ui/behaviors"), 200, "No behavior yet", `<pre tabindex="0">taskledger submit`)
}

func TestBehaviors_TellWhatWasDone(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	s.submit("noop", "t1.b", "{}")
	s.submit("fails", "c", `"why"`)
	got := s.want(s.get("viewer", "/ui/behaviors"), 200, `id="b-noop"`, `id="b-fails"`, "100.0 %", `data-label="Took"`,
		`href="/ui/tasks?behavior=noop&amp;status=SUCCESS">2</a>`)
	s.wantNot(got, "Pause noop")
	got = s.get("tenant", "/ui/behaviors")
	s.want(got, 200, `status=SUCCESS">1</a>`)
	s.wantNot(got, "Since their owners", "Pause noop", "fails")
	s.wantNot(s.get("sleeper", "/ui/behaviors"), "noop", "fails", "Pause sleep")
}

func TestBehaviors_ArePausedWithAReasonAndGoOn(t *testing.T) {
	s := serve(t)
	s.want(s.get("operator", "/ui/behaviors"), 200, `action="/ui/behaviors/noop/pause"`)
	form := url.Values{"reason": {"the <disk> is full"}, "next": {"/ui/behaviors"}}
	got := s.want(s.send("operator", "POST", "/ui/behaviors/noop/pause", form), 303)
	if to := got.header.Get("Location"); to != "/ui/behaviors" {
		t.Error(to)
	}
	s.want(s.get("operator", "/ui/behaviors"), 200, "the &lt;disk&gt; is full", "olga", `action="/ui/behaviors/noop/unpause"`)
	s.want(s.get("tenant", "/ui/behaviors"), 200)
	s.wantNot(s.get("tenant", "/ui/behaviors"), "disk", "olga")
	s.want(s.get("viewer", "/ui/settings"), 200, "the &lt;disk&gt; is full", "Paused", "All that the journal")
	s.want(s.send("operator", "POST", "/ui/behaviors/noop/unpause", url.Values{}), 303)
	s.want(s.get("viewer", "/ui/settings"), 200, "Nothing is paused", "Unpaused", "olga")

	s.want(s.send("operator", "POST", "/ui/behaviors/none/pause", form), 422, "no node runs none", `href="/ui/behaviors"`)
	s.want(s.send("operator", "POST", "/ui/behaviors/No%20Name/pause", form), 400, "No Name")
	form.Set("reason", strings.Repeat("x", 300))
	s.want(s.send("operator", "POST", "/ui/behaviors/noop/pause", form), 400, "reason")
	s.want(s.send("operator", "POST", "/ui/behaviors/noop/pause", url.Values{"colour": {"red"}}), 400, "colour")
	form = url.Values{"force": {"true"}, "next": {"https://evil.example/"}}
	got = s.want(s.send("operator", "POST", "/ui/behaviors/none/pause", form), 303)
	if to := got.header.Get("Location"); to != "/ui/" {
		t.Error(to)
	}
	s.want(s.get("viewer", "/ui/behaviors"), 200, `id="b-none"`)
}

// Rates count all tasks of the cluster, so only a token that sees all of them sees rates.
func TestOverview_DrawsTheLastQuarterOfAnHour(t *testing.T) {
	var lately trend.Trend
	s := serve(t, func(_ *api.Config, of *ui.Config) { of.Trend = &lately })
	s.wantNot(s.get("viewer", "/ui/"), "The last quarter of an hour")
	sample := func(ago time.Duration) {
		t.Helper()
		shards, err := (operations.Direct{Client: s.node.Client}).Shards(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lately.Add(time.Now().Add(-ago), shards)
	}
	sample(20 * time.Second)
	s.submit("noop", "a", "{}")
	s.submit("fails", "b", `"why"`)
	sample(10 * time.Second)
	lately.Add(time.Now(), nil)
	got := s.want(s.get("viewer", "/ui/"), 200, "The last quarter of an hour", "<polyline", "succeeded: 0.10 /s now", "failed: 0.10 /s now")
	s.wantNot(got, " style=")
	s.want(s.get("viewer", "/ui/behaviors"), 200, "The last quarter of an hour", "0.10 /s", "of 10.0 s")
	for _, page := range []string{"/ui/", "/ui/behaviors"} {
		s.wantNot(s.get("tenant", page), "The last quarter of an hour")
	}
}

// crowded is a cluster that has more pages of tasks than the API lists, and takes a while for each page.
type crowded struct {
	silent
	takes time.Duration
	asked *atomic.Int64
}

func (c crowded) ListPage(ctx context.Context, _ task.Filter, _ string) (page task.Page, err error) {
	n := c.asked.Add(1)
	select {
	case <-time.After(c.takes):
	case <-ctx.Done():
		return page, ctx.Err()
	}
	id := events.TaskID(fmt.Sprint("t1.", n))
	page.Tasks = []task.Task{{ID: id, Behavior: "noop", Status: task.Created, Substatus: task.SubReady}}
	page.Cursor = string(id)
	return page, nil
}

func (crowded) Settings(context.Context) (is task.Settings, err error) { return is, nil }

// However slow its list is, a page has the counts of the newest tasks of a prefix, and counts them now and then alone.
func TestBehaviors_OfAPrefixWithManyTasksAreCountedInTime(t *testing.T) {
	for _, takes := range []time.Duration{30 * time.Millisecond, time.Second, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int64
			s := serveClient(t, crowded{takes: takes, asked: &asked}, ui.Config{})
			for _, page := range []string{"/ui/behaviors", "/ui/tasks"} {
				got := s.want(s.get("tenant", page), 200, "newest ones", "noop")
				s.wantNot(got, "counts: ")
			}
			if n := asked.Load(); n > 1+1500/takes.Milliseconds()+2 {
				t.Errorf("%d pages of %s are listed", n, takes)
			}
			time.Sleep(6 * time.Second)
			was := asked.Load()
			if s.get("tenant", "/ui/behaviors"); asked.Load() == was {
				t.Error("they are never counted again")
			}
		})
	}
}

// A slow count gives its place back after each page, so that other requests of its principal go on.
func TestBehaviors_ThatAreCountedLeavePlacesToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		s := serveClient(t, crowded{takes: 100 * time.Millisecond, asked: &asked}, ui.Config{})
		var counting sync.WaitGroup
		for range 4 {
			counting.Go(func() { s.want(s.get("tenant", "/v1/behaviors"), 200, `"partial":true`) })
		}
		synctest.Wait()
		began := time.Now()
		s.want(s.get("tenant", "/v1/tasks"), 200, "noop")
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("a list waits %s for its place", took)
		}
		counting.Wait()
	})
}
