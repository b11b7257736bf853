package ui_test

import (
	"context"
	"encoding/json"
	"testing"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/ui"
	"taskledger/engine"
)

func TestOverview_OfAnEmptyClusterSaysHowToBegin(t *testing.T) {
	s := serve(t)
	s.want(s.get("viewer", "/ui/"), 200, "Nothing has been submitted yet", "taskledger submit")
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

func TestOverview_TellsTheBrakeTheArchiveBehindAndAttemptsThatAreOverdue(t *testing.T) {
	s := serve(t)
	var told []engine.ShardInfo
	err := json.Unmarshal([]byte(`[
		{"shard":0,"refuses":"the store holds 9 of 10 bytes","degraded":"the store holds 9 of 10 bytes","behind":70},
		{"shard":1,"refuses":"the store holds 9 of 10 bytes","degraded":"the store holds 9 of 10 bytes","behind":30},
		{"shard":2,"problem":"quarantined: <damaged>","refuses":"not now"},
		{"shard":3,"overdue":2,"overdue_since":"2026-11-29T12:00:00Z"},
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
		`href="/ui/tasks?substatus=running"`)
	other.wantNot(got, "not now", "Nothing.", "2026-11-29T12:00:00")
	for _, none := range []string{"viewer", "admin"} {
		s.wantNot(s.get(none, "/ui/"), "behind", "refused", "run on")
	}
	var shown api.Shards
	if err := json.Unmarshal(apitest.Ask(other.api, "viewer", "GET", "/v1/shards", "").Body.Bytes(), &shown); err != nil ||
		shown.Shards[0].Behind != 70 || shown.Shards[3].Overdue != 2 || shown.Shards[0].Refuses == "" {
		t.Errorf("%v %+v", err, shown.Shards)
	}
}
