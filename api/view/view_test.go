package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"taskledger/api/view"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/projection/taskview"
	"taskledger/store"
	"taskledger/task"
)

// What is shown of a session that has ended long ago comes from its id alone.
func TestNames_StandBesideSessionsWhereverANodeIsShown(t *testing.T) {
	session := store.SessionID("web-1", "abcdefghij")
	shown := taskview.Of(&projection.Task{
		Kind:        &projection.Kind{Behavior: "work"},
		LastAttempt: projection.LastAttempt{Node: session},
	}, 1, 1)
	event := view.OfEvent(ledger.Event{Event: events.Event{Body: &events.Lost{}}, Behavior: "work", Node: session})
	started := view.OfEvent(ledger.Event{Event: events.Event{Body: &events.Started{Node: session}}, Behavior: "work", Node: session})
	for what, v := range map[string]any{
		"task":  shown,
		"event": event,
		"start": started,
		"node":  view.OfNode(store.NodeInfo{ID: session, Name: "web-1"}),
		"shard": engine.ShardInfo{Owner: session, NodeName: "web-1"},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var shown struct{ Node, Session, Behavior string }
		if err := json.Unmarshal(text, &shown); err != nil || shown.Node != "web-1" || shown.Session != session {
			t.Errorf("%s: %s, %v", what, text, err)
		}
		if is := what == "task" || what == "event" || what == "start"; is != (shown.Behavior == "work") || strings.Count(string(text), session) != 1 {
			t.Errorf("%s: %s", what, text)
		}
	}
	if idle, err := json.Marshal(task.Task{}); err != nil || strings.Contains(string(idle), "session") {
		t.Errorf("a task that does not run: %s, %v", idle, err)
	}
}

func TestNodes_TellHowFarAClockIsOff(t *testing.T) {
	for ahead, want := range map[int64]string{0: "-", 3_600_000: "1h0m0s ahead", -1_500: "1.5s behind"} {
		v := view.OfNode(store.NodeInfo{ClockAhead: ahead})
		if got := view.Clock(v.ClockAheadMs); got != want {
			t.Errorf("%d ms ahead: %q, want %q", ahead, got, want)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if shown := strings.Contains(string(text), "clock_ahead_ms"); shown != (ahead != 0) {
			t.Errorf("%d ms ahead: %s", ahead, text)
		}
	}
}
