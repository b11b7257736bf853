package outcome_test

import (
	"encoding/json"
	"testing"
	"time"

	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/name"
	"taskledger/task"
)

func TestCloudEvent_NamesTheNodeOfTheLastAttempt(t *testing.T) {
	task := projection.Task{
		ID:     "x",
		Kind:   &projection.Kind{Behavior: "work"},
		Counts: projection.Counts{Attempt: 2},
		Status: task.Success,
	}
	for _, node := range []string{"", "n-1", `"\<>&`, "é\n"} {
		task.LastNode = name.Of(node)
		o, is := outcome.Of(&task, &events.Event{Body: &events.Succeeded{Run: 1}})
		var got struct{ Data struct{ Node *string } }
		w := outcome.CloudEvents{Source: "taskledger"}
		if err := json.Unmarshal(w.Append(nil, &o), &got); err != nil || !is {
			t.Fatalf("%t, %v", is, err)
		}
		if named := got.Data.Node; (named == nil) != (node == "") || named != nil && *named != node {
			t.Errorf("of a task last on %q: %v", node, named)
		}
	}
}

func TestCloudEvent_TellsTheTimeOfEachOutcome(t *testing.T) {
	w := outcome.CloudEvents{Source: "taskledger", Shard: 3}
	for _, at := range []events.Millis{0, 0, 1_764_000_000_000, 1_764_000_000_000, 1_764_000_000_001} {
		var got struct {
			ID   string
			Time time.Time
		}
		o := outcome.Outcome{At: at, Status: task.Success, Behavior: "work", Ref: events.RefOf(7, 0)}
		if err := json.Unmarshal(w.Append(nil, &o), &got); err != nil || !got.Time.Equal(at.Time()) || got.ID != (events.Position{Shard: 3, Ref: o.Ref}).String() {
			t.Errorf("%v of %v: %v", got, at.Time(), err)
		}
	}
}

// A failure whose retry is cancelled is told from memory, which holds the beginning of a long error alone.
func TestCloudEvent_SaysThatAnErrorIsCut(t *testing.T) {
	for _, elided := range []bool{false, true} {
		task := projection.Task{
			ID:     "x",
			Kind:   &projection.Kind{Behavior: "work"},
			Status: task.Failure,
			Error:  &events.Error{Code: events.CodePanic, Message: "long"},
			Flags:  projection.Flags{ErrorElided: elided},
		}
		o, is := outcome.Of(&task, &events.Event{Body: &events.Rescheduled{}})
		var got struct {
			Data struct {
				Cut bool `json:"error_cut"`
			}
		}
		w := outcome.CloudEvents{Source: "taskledger"}
		if err := json.Unmarshal(w.Append(nil, &o), &got); err != nil || !is || got.Data.Cut != elided {
			t.Errorf("cut %t: told %t, %t, %v", elided, got.Data.Cut, is, err)
		}
	}
}
