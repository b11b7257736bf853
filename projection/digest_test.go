package projection_test

import (
	"fmt"
	"testing"

	"taskledger/events"
	"taskledger/projection"
)

// What verification compares is all that a later entry may depend on.
func TestStateDigest_TellsEveryDifference(t *testing.T) {
	fold := func(alter func(e *events.Entry)) events.Hash {
		state := projection.NewShard(0)
		var b events.Builder
		b.Reset(events.Entry{Number: 1, Epoch: 1, Owner: "o", Time: 5, Origins: nil})
		policy, err := events.Policy{}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		b.Add(events.Event{Task: "x", Seq: 1, Body: &events.Created{Behavior: "work", Policy: policy, NotBefore: 9, Params: events.JSON([]byte("1"))}})
		b.AddOrigin(events.Origin{Sender: "s", Lane: 1, Number: 7, Answers: []byte{1}})
		e := &b.Entry
		if alter != nil {
			alter(e)
		}
		for i := range e.Events {
			if _, err := state.Apply(state.Task(e.Events[i].Task), &e.Events[i]); err != nil {
				t.Fatal(err)
			}
		}
		state.Seal(e)
		return state.Digest(nil)
	}
	same := fold(nil)
	if fold(nil) != same {
		t.Fatal("two folds of one entry differ")
	}
	for name, alter := range map[string]func(e *events.Entry){
		"time":       func(e *events.Entry) { e.Time++ },
		"task":       func(e *events.Entry) { e.Events[0].Task = "y" },
		"parameters": func(e *events.Entry) { e.Events[0].Body.(*events.Created).Params[1]++ },
		"schedule":   func(e *events.Entry) { e.Events[0].Body.(*events.Created).NotBefore++ },
		"sender":     func(e *events.Entry) { e.Origins[0].Sender = "r" },
		"lane":       func(e *events.Entry) { e.Origins[0].Lane++ },
		"number":     func(e *events.Entry) { e.Origins[0].Number++ },
		"answers":    func(e *events.Entry) { e.Origins[0].Answers = []byte{2} },
		"no sender":  func(e *events.Entry) { e.Origins = nil },
	} {
		if fold(alter) == same {
			t.Errorf("another %s has the same digest", name)
		}
	}
}

// An owner that sums a large shard says now and then that it is not stuck, which would end its session.
func TestStateDigest_OfALargeShardComesInSteps(t *testing.T) {
	j := newJournal(t)
	const tasks = 3 * 4096
	for i := range tasks {
		if i%512 == 0 {
			j.seal(0)
		}
		j.add(events.TaskID(fmt.Sprint("t", i)), j.created())
	}
	j.seal(0)
	steps := 0
	if sum := j.state.Digest(func() { steps++ }); steps < 3 || sum != j.state.Digest(nil) {
		t.Errorf("%d steps over %d tasks", steps, j.state.Live())
	}
}
