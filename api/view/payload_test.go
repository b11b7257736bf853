package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"taskledger/api/view"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/projection/taskview"
)

// One payload that nobody can read must not hide all that is shown beside it.
func TestPayloads_ThatAreNoJSONTextAreShownAsTheirBytes(t *testing.T) {
	for payload, want := range map[string]string{
		"\x01{\"a\":1}": `{"a":1}`,
		"\x01{\"a\":":   `{"codec":1,"base64":"eyJhIjo="}`,
		"\x07\x81\xa1a": `{"codec":7,"base64":"gaFh"}`,
		"\x01\"\xff\"":  `{"codec":1,"base64":"Iv8i"}`,
		"\x07":          `{"codec":7,"base64":""}`,
		"":              `{"codec":0,"base64":""}`,
	} {
		p := events.Payload(payload)
		for what, v := range map[string]any{
			"params of a task":  taskview.Of(&projection.Task{Params: p}, 1, 1),
			"result of a task":  taskview.Of(&projection.Task{Result: p}, 1, 1),
			"created event":     view.OfEvent(ledger.Event{Event: events.Event{Body: &events.Created{Params: p}}}),
			"merged event":      view.OfEvent(ledger.Event{Event: events.Event{Body: &events.Merged{Params: p}}}),
			"event of a result": view.OfEvent(ledger.Event{Event: events.Event{Body: &events.Succeeded{Result: p}}}),
		} {
			if text, err := json.Marshal(v); err != nil || !strings.Contains(string(text), want) {
				t.Errorf("payload %q in %s: %s, %v; want %s in it", payload, what, text, err, want)
			}
		}
	}
	if text, err := json.Marshal(view.OfOutcome("a/b", []byte("{"), nil)); err != nil || !strings.Contains(string(text), `"base64":"ew=="`) {
		t.Errorf("outcome: %s, %v", text, err)
	}
}
