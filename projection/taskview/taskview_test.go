package taskview_test

import (
	"encoding/json"
	"testing"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/name"
	"taskledger/projection/taskview"
	"taskledger/store"
	"taskledger/task"
)

// Programs read this JSON: no name and no order of it may change.
func TestTask_HasTheJSONOfTheAPI(t *testing.T) {
	session := store.SessionID("web-1", "abcdefghij")
	shown := taskview.Of(&projection.Task{
		ID:       "a/b",
		Kind:     &projection.Kind{Behavior: "work", Creator: "ada", Policy: events.Policy{MaxLost: 3}},
		Priority: 2,
		Params:   events.JSON([]byte(`{"n":1}`)),
		Status:   task.Success,
		Flags:    projection.Flags{Suspended: true, Cancelled: true, ErrorElided: true},
		Seq:      7,
		Created:  events.RefOf(2, 0),
		Last:     events.RefOf(9, 1),
		Counts:   projection.Counts{Attempt: 4, Failures: 3, Lost: 2, Runs: 1},
		LastAttempt: projection.LastAttempt{
			StartedAt: 1_500,
			Node:      session,
			LastNode:  name.Of(session),
		},
		Forgotten: true,
		CreatedAt: 1_000,
		EndedAt:   2_000,
		Due:       3_000,
		Wait: &projection.Wait{
			Since:        2_500,
			SuspendedAt:  2_600,
			By:           "bob",
			Reason:       "late",
			SuspendedBy:  "eve",
			SuspendedFor: "rest",
		},
		Result:   events.Payload("\x07\x81"),
		Error:    &events.Error{Code: "no", Message: "luck"},
		Progress: &events.Progressed{Done: 1, Total: 2, Note: "half"},
	}, 1, 4_000)
	text, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"a/b","version":"0.9.1","behavior":"work","status":"SUCCESS","substatus":"running",` +
		`"since":"1970-01-01T00:00:01.500Z","priority":2,"suspended":true,"cancelled":true,"forgotten":true,` +
		`"attempt":4,"failures":3,"lost":2,"runs":1,` +
		`"node":"web-1","session":"web-1-abcdefghij","last_node":"web-1-abcdefghij","creator":"ada",` +
		`"suspended_at":"1970-01-01T00:00:02.600Z","created_at":"1970-01-01T00:00:01.000Z",` +
		`"schedule_not_before":"1970-01-01T00:00:03.000Z","started_at":"1970-01-01T00:00:01.500Z",` +
		`"ended_at":"1970-01-01T00:00:02.000Z","progress":{"done":1,"total":2,"note":"half"},` +
		`"params":{"n":1},"result":{"codec":7,"base64":"gQ=="},"error":{"code":"no","message":"luck"},"error_cut":true,` +
		`"asked_by":"bob","reason":"late","suspended_by":"eve","suspended_for":"rest"}`
	if string(text) != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	if d := shown.Details; d.Seq != 7 || d.Life != events.RefOf(2, 0) || d.Policy.MaxLost != 3 || d.WaitsSince != 2_500 {
		t.Errorf("details %+v", d)
	}
}
