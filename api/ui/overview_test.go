package ui_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/ui"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/task"
)

func TestOverview_OfAnEmptyClusterSaysHowToBegin(t *testing.T) {
	s := serve(t)
	s.want(s.get("viewer", "/ui/"), 200, "Nothing has been submitted yet", `<pre tabindex="0">taskledger submit`)
}

func TestOverview_TellsWhatNeedsAttention(t *testing.T) {
	s := serve(t)
	s.want(s.get("viewer", "/ui/"), 200, "Nothing.")
	s.submit("noop", "a", "{}")
	if got := apitest.Ask(s.api, "operator", "POST", "/v1/behaviors/noop/pause", `{"reason":"the disk is full"}`); got.Code != 204 {
		t.Fatal(got.Body)
	}
	s.want(s.get("viewer", "/ui/"), 200, "Paused: ", "the disk is full", "olga", `href="/ui/tasks?behavior=noop"`)
	s.wantNot(s.get("tenant", "/ui/"), "the disk is full", "Session")
}

// telling is a cluster whose shards tell what they are made to.
type telling struct {
	operations.Client
	shards []engine.ShardInfo
}

func (c telling) Shards(context.Context) ([]engine.ShardInfo, error) { return c.shards, nil }

func TestOverview_TellsTheAdmissionTheArchiveBehindAndAttemptsThatAreOverdue(t *testing.T) {
	s := serve(t)
	var told []engine.ShardInfo
	err := json.Unmarshal([]byte(`[
		{"shard":0,"refuses":"the store holds 9 of 10 bytes","degraded":"the store holds 9 of 10 bytes","behind":70},
		{"shard":1,"refuses":"the store holds 9 of 10 bytes","degraded":"the store holds 9 of 10 bytes","behind":30},
		{"shard":2,"problem":"quarantined: <damaged>","refuses":"not now"},
		{"shard":3,"overdue":2,"overdue_since":"2026-11-29T12:00:00Z"},
		{"shard":5,"waiting":120,"waiting_since":"2026-11-29T12:30:00Z"},
		{"shard":6,"waiting":1,"waiting_since":"2026-11-29T10:30:00Z"},
		{"shard":4,"overdue":1,"overdue_since":"2026-11-29T11:00:00Z","degraded":"not trimmed: no"}
	]`), &told)
	if err != nil {
		t.Fatal(err)
	}
	client := telling{operations.Direct{Client: s.node.Client}, told}
	other := serveClient(t, client, ui.Config{})
	got := other.want(other.get("viewer", "/ui/"), 200,
		"Shards 0, 1: New tasks are refused: the store holds 9 of 10 bytes<",
		"Shard 2: quarantined: &lt;damaged&gt;<",
		"Shard 4: not trimmed: no<",
		"Shards 0, 1: the archive is behind, it lacks 100 entries",
		"Shards 3, 4: attempts run on although their time-out is over: 3",
		`datetime="2026-11-29T11:00:00.000Z"`,
		"121 tasks may start and have waited for more than a minute",
		`datetime="2026-11-29T10:30:00.000Z"`,
		`href="/ui/tasks?substatus=ready"`,
		`href="/ui/tasks?substatus=running"`)
	other.wantNot(got, "not now", "Nothing.", "2026-11-29T12:00:00", "2026-11-29T12:30:00")
	for _, none := range []string{"viewer", "admin"} {
		s.wantNot(s.get(none, "/ui/"), "behind", "refused", "run on")
	}
	var shown api.Shards
	if err := json.Unmarshal(apitest.Ask(other.api, "viewer", "GET", "/v1/shards", "").Body.Bytes(), &shown); err != nil ||
		shown.Shards[0].Behind != 70 || shown.Shards[3].Overdue != 2 || shown.Shards[0].Refuses == "" {
		t.Errorf("%v %+v", err, shown.Shards)
	}
}

// queueing is a cluster with pages of tasks that may start.
type queueing struct {
	operations.Client
	pages []task.Page
}

func (c queueing) ListPage(_ context.Context, _ task.Filter, cursor string) (task.Page, error) {
	n, _ := strconv.Atoi(cursor) // the first page has none
	page := c.pages[n]
	page.Cursor = strconv.Itoa(n + 1)
	page.Through = n == len(c.pages)-1
	return page, nil
}

// Whoever sees some tasks alone is told of those that wait, however many others have just become ready.
func TestOverview_LooksForWaitingTasksBehindThoseThatHaveJustBecomeReady(t *testing.T) {
	s := serve(t)
	now := time.Now()
	of := func(id string, waits time.Duration) task.Task {
		return task.Task{
			ID:        events.TaskID(id),
			Behavior:  "sleep",
			Status:    task.Created,
			Substatus: task.SubReady,
			Since:     events.MillisOf(now.Add(-waits)),
		}
	}
	fresh := task.Page{Tasks: []task.Task{of("fresh", time.Second)}}
	old := task.Page{Tasks: []task.Task{of("old", time.Hour), of("older", 2*time.Hour)}}
	since := events.MillisOf(now.Add(-2 * time.Hour)).Time().UTC().Format("2006-01-02T15:04:05.000Z")
	for name, c := range map[string]struct {
		pages     []task.Page
		has, none string
	}{
		"behind fresh ones": {[]task.Page{fresh, old}, "2 tasks may start", "not whole"},
		"more than a look":  {[]task.Page{old, fresh, fresh, fresh, fresh, fresh}, "2 tasks or more may start", since},
		"none was found":    {[]task.Page{fresh, fresh, fresh, fresh, fresh, fresh}, "there are more than a page looks at", "may start"},
		"none":              {[]task.Page{fresh}, "Nothing.", "not whole"},
	} {
		other := serveClient(t, queueing{operations.Direct{Client: s.node.Client}, c.pages}, ui.Config{})
		got := other.want(other.get("sleeper", "/ui/"), 200, c.has)
		other.wantNot(got, c.none)
		if name == "behind fresh ones" {
			other.want(got, 200, since)
		}
	}
}
