package command_test

import (
	"encoding/json"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
)

func TestCloudEvent_NamesTheNodeOfTheLastAttempt(t *testing.T) {
	task := projection.Task{ID: "x", Kind: &projection.Kind{Behavior: "work"}, Attempt: 2, Status: projection.Success}
	for _, node := range []string{"", "n-1"} {
		task.LastNode = projection.NameOf(node)
		o, is := command.OutcomeOf(&task, &events.Event{Body: &events.Succeeded{Run: 1}})
		var got struct{ Data struct{ Node *string } }
		if err := json.Unmarshal(o.CloudEvent(nil, "taskledger", 0), &got); err != nil || !is {
			t.Fatalf("%t, %v", is, err)
		}
		if named := got.Data.Node; (named == nil) != (node == "") || named != nil && *named != node {
			t.Errorf("of a task last on %q: %v", node, named)
		}
	}
}
