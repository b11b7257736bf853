package ui_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"taskledger/api/operations"
	"taskledger/api/ui"
	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/engine/enginetest"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/progress"
	"taskledger/work/segmentation"
)

// rows is a work over as many numbers as its parameter says, in ten buckets: of each an item fails.
var rows = work.Define("rows", nil, work.Partition[int, int]{
	ID:           "all",
	Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 100, Buckets: 10},
	Thresholds:   []work.Threshold{{Counter: "changes", Limit: 1000}},
	Items: func(_ context.Context, n int, b work.Bucket) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := b.From; i < min(b.To, int64(n)); i++ {
				if !yield(int(i), nil) {
					return
				}
			}
		}
	},
	Process: func(_ context.Context, i int) error {
		if i%10 == 7 {
			return behaviors.Code("odd", errors.New("<i>seven</i>"), nil)
		}
		return nil
	},
})

func TestWork_OfAnEmptyClusterSaysWhatOneIs(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	s.want(s.get("viewer", "/ui/work"), 200, "No work</h2>", "cuts a large set into buckets")
	s.submit("noop", "b/1", "{}")
	s.want(s.get("viewer", "/ui/work?find=b%2F1"), 200, `role="alert"`, `value="b/1"`, "noop")
	s.want(s.get("viewer", "/ui/work?find=b"), 200, "No work of these tasks")
	s.want(s.get("viewer", "/ui/work?behavior=No+Such"), 200, `role="alert"`, `value="No Such"`)
	s.want(s.get("viewer", "/ui/work/a"), 404)
}

// However many other tasks there are, the list has the works, in pages by cursor.
func TestWork_ListsWorksAlone(t *testing.T) {
	s := serveOn(t, enginetest.Memory(t, rows, builtin.Noop()))
	const all = 25
	for i := range all {
		s.begin("rows", fmt.Sprintf("w%d/1", i), "0")
		s.submit("noop", fmt.Sprintf("n%d", i), "{}")
	}
	for i := range all {
		s.node.Await(t, events.TaskID(fmt.Sprintf("w%d/1", i)))
	}
	for i := range 30 {
		s.begin("noop", fmt.Sprintf("m%d", i), "{}")
	}
	seen, path, pages := map[string]int{}, "/ui/work", 0
	for ; path != "" && pages < 5; pages++ {
		got := s.want(s.get("viewer", path), 200)
		for _, row := range regexp.MustCompile(`<tr id="w-([^"]*)"`).FindAllStringSubmatch(got.text, -1) {
			seen[row[1]]++
		}
		_, rest, _ := strings.Cut(got.text, `<p><a class="button" href="`)
		path, _, _ = strings.Cut(html.UnescapeString(rest), `" rel="next">Older works`)
		if !strings.HasPrefix(path, "/ui/work?cursor=") {
			path = ""
		}
	}
	if len(seen) != all || pages != 2 {
		t.Errorf("%d pages: %v", pages, seen)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", id, n)
		}
	}
	s.want(s.get("viewer", "/ui/work?find=w7"), 200, `href="/ui/work/w7~1"`)
	s.want(s.get("viewer", "/ui/work?behavior=noop"), 200, "No work of these tasks")
	s.want(s.get("viewer", "/ui/tasks?work=true"), 200, "w24/1")
	s.wantNot(s.get("viewer", "/ui/tasks?work=true"), "n24")
	s.want(s.get("viewer", "/ui/tasks?work=false"), 200, "want true")
	s.wantNot(s.get("tenant", "/ui/work"), "w7~1")
}

func TestWork_ShowsPartitionsAndErrorsAndIsSteered(t *testing.T) {
	s := serveWorks(t)
	s.begin("rows", "w/1", "100")
	s.node.Await(t, events.TaskID("w/1"))
	s.want(s.get("viewer", "/ui/work"), 200, `href="/ui/work/w~1"`, `data-label="State">complete<`)
	s.wantNot(s.get("viewer", "/ui/work"), "Progress")
	if to := s.get("viewer", "/ui/work?find=w%2F1").header.Get("Location"); to != "/ui/work/w~1" {
		t.Error(to)
	}
	got := s.want(s.get("viewer", "/ui/work/w~1"), 200, "10 done with failed items", "<rect",
		"&lt;i&gt;seven&lt;/i&gt;", "odd", "changes", "90", "<dt>In open buckets</dt>", " at once, with 1 thread each")
	s.wantNot(got, "<i>seven", "/rerun", "/reset")
	s.want(s.get("operator", "/ui/work/w~1"), 200, `action="/ui/work/w~1/rerun"`, `action="/ui/work/w~1/reset"`)
	s.wantNot(s.get("sleeper", "/ui/work"), "w~1")
	s.want(s.get("sleeper", "/ui/work/w~1"), 404)
	next := url.Values{"next": {"/ui/work/w~1"}}
	s.want(s.send("operator", "POST", "/ui/work/w~1/rerun", next), 303)
	s.node.Await(t, events.TaskID("w/1"))
	s.want(s.get("operator", "/ui/work/w~1"), 200, "of failed buckets alone")
	next.Set("what", "run")
	s.want(s.send("operator", "POST", "/ui/work/w~1/reset", next), 303)
	got = s.want(s.get("operator", "/ui/work/w~1"), 200, "reset")
	if strings.Contains(got.text, "10 done with") {
		t.Errorf("the run is still there: %s", clip(got.text))
	}
	s.want(s.send("operator", "POST", "/ui/work/w~1/rerun", next), 409, "Back")
	s.want(s.get("viewer", "/ui/audit"), 200, "WorkReset", "olga", `href="/ui/tasks/w~1"`)
}

// A form of a work that has changed since, as by the same form, says so and does nothing.
func TestWork_IsSteeredAsItWasSeen(t *testing.T) {
	s := serveWorks(t)
	s.begin("rows", "w/1", "100")
	s.node.Await(t, events.TaskID("w/1"))
	page := s.want(s.get("operator", "/ui/work/w~1"), 200, `/rerun"><input type="hidden" name="version"`)
	seen := url.Values{"version": {between(page.text, `name="version" value="`)}, "next": {"/ui/work/w~1"}}
	s.want(s.send("operator", "POST", "/ui/work/w~1/rerun", seen), 303)
	s.node.Await(t, events.TaskID("w/1"))
	for _, verb := range []string{"rerun", "reset"} {
		for _, what := range []string{"run", "thresholds", "token"} {
			seen.Set("what", what)
			got := s.send("operator", "POST", "/ui/work/w~1/"+verb, seen)
			s.want(got, 412, "has changed since you saw it, so nothing was done", `href="/ui/work/w~1"`)
		}
	}
	s.want(s.get("operator", "/ui/work/w~1"), 200, "of failed buckets alone")
}

// streaming is a cluster with one work, which is a stream and was suspended. It notes what is asked for.
type streaming struct {
	silent
	did []string
}

func (s *streaming) Works() operations.Works { return streamingWorks{silentWorks{}, s} }

type streamingWorks struct {
	silentWorks
	s *streaming
}

func (w streamingWorks) Work(_ context.Context, id events.TaskID) (progress.Work, error) {
	return progress.Work{
		Task:   id,
		Status: task.Running,
		State:  progress.Suspended,
		Stream: &progress.Stream{Token: `t"<1>`},
	}, nil
}

func (w streamingWorks) WorkFailures(context.Context, events.TaskID, string, int) (p progress.FailurePage, err error) {
	return p, nil
}

func (w streamingWorks) ResetWork(_ context.Context, id events.TaskID, how operations.WorkReset) error {
	token := "none"
	if how.Token != nil {
		token = fmt.Sprintf("%q", *how.Token)
	}
	w.s.did = append(w.s.did, fmt.Sprintf("%s token %s for %q, thresholds %t", id, token, how.Reason, how.Thresholds))
	return nil
}

func TestWork_TheTokenOfAStreamIsSetByOperators(t *testing.T) {
	c := &streaming{}
	s := serveClient(t, c, ui.Config{})
	s.want(s.get("operator", "/ui/work/w~1"), 200, `name="token" value="t&#34;&lt;1&gt;"`, `value="token">Set the token`, `name="reason" required`)
	s.want(s.get("viewer", "/ui/work/w~1"), 200, "<dt>Rate</dt><dd>not known yet</dd>")
	s.wantNot(s.get("viewer", "/ui/work/w~1"), "Set the token", "In open buckets")
	form := url.Values{"what": {"token"}, "token": {"t 7"}, "reason": {" restored "}, "next": {"/ui/work/w~1"}}
	s.want(s.send("viewer", "POST", "/ui/work/w~1/reset", form), 403)
	if to := s.want(s.send("operator", "POST", "/ui/work/w~1/reset", form), 303).header.Get("Location"); to != "/ui/work/w~1" {
		t.Error(to)
	}
	form.Set("token", "")
	s.want(s.send("operator", "POST", "/ui/work/w~1/reset", form), 303)
	for _, what := range []string{"thresholds", "run"} {
		s.want(s.send("operator", "POST", "/ui/work/w~1/reset", url.Values{"what": {what}}), 303)
	}
	want := []string{
		`w/1 token "t 7" for "restored", thresholds false`,
		`w/1 token "" for "restored", thresholds false`,
		`w/1 token none for "", thresholds true`,
		`w/1 token none for "", thresholds false`,
	}
	if !slices.Equal(c.did, want) {
		t.Errorf("%q", c.did)
	}
}

// running is a cluster with one work under way, with some of its buckets open.
type running struct {
	silent
	total uint64
	open  []uint64
}

func (r running) Works() operations.Works { return runningWorks{silentWorks{}, r} }

type runningWorks struct {
	silentWorks
	r running
}

func (w runningWorks) Work(_ context.Context, id events.TaskID) (progress.Work, error) {
	is := progress.Work{Task: id, Status: task.Running, State: progress.InProgress}
	for _, n := range w.r.open {
		is.Open = append(is.Open, progress.Bucket{Number: n, Worker: 1, Task: id})
	}
	open := uint64(len(w.r.open))
	is.Partitions = []progress.Partition{{
		ID:      "p",
		Buckets: progress.Buckets{Total: w.r.total, Done: w.r.total/2 - open, Open: open, Failed: 1},
	}}
	return is, nil
}

func (w runningWorks) WorkFailures(context.Context, events.TaskID, string, int) (p progress.FailurePage, err error) {
	return p, nil
}

// A bucket is as wide in the strip as its share of the partition, and where that is nothing to be seen, it is seen.
func TestWork_DrawsBucketsToScale(t *testing.T) {
	for _, c := range []struct {
		of    running
		parts []string
	}{
		{running{total: 10, open: []uint64{1, 4, 10}}, []string{
			`class="b-mark" x="0.00" y="0" width="100.00"`,
			`class="b-mark" x="300.00" y="0" width="100.00"`,
			`class="b-mark" x="900.00" y="0" width="100.00"`,
			`class="b-done" x="0.00" y="6" width="100.00"`,
			`class="b-failed" x="100.00" y="6" width="100.00"`,
			`class="b-open" x="200.00" y="6" width="300.00"`,
			`class="b-left" x="500.00" y="6" width="500.00"`,
		}},
		{running{total: 1_000_000, open: []uint64{1, 500_001, 1_000_000}}, []string{
			`class="b-mark" x="0.00" y="0" width="2.00"`,
			`class="b-mark" x="500.00" y="0" width="2.00"`,
			`class="b-mark" x="998.00" y="0" width="2.00"`,
		}},
	} {
		s := serveClient(t, c.of, ui.Config{})
		s.want(s.get("viewer", "/ui/work/w~1"), 200, c.parts...)
	}
}

// serveWorks is serve on a node that has a work.
func serveWorks(t *testing.T) *server { return serveOn(t, enginetest.Memory(t, rows)) }
