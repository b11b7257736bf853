package command_test

import (
	"maps"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/store"
)

func TestSightings_KeepTheLastOfEachNodeThatIsThereOrServed(t *testing.T) {
	nodes := func(ids ...string) map[string]store.NodeInfo {
		m := map[string]store.NodeInfo{}
		for _, id := range ids {
			m[id] = store.NodeInfo{ID: id}
		}
		return m
	}
	served := func(node string) bool { return node == "b" }
	s := command.Sightings(nil).After(10, nodes("a", "b", "c"), served)
	s = s.After(20, nodes("a"), served)
	if want := (command.Sightings{"a": 20, "b": 10}); !maps.Equal(s, want) {
		t.Errorf("sightings are %v, want %v", s, want)
	}
	if late := s.After(15, nodes("a", "b"), served); late["a"] != 20 || late["b"] != 15 {
		t.Errorf("after a read that was overtaken sightings are %v", late)
	}
}

func TestSightings_MoveTheStampsOfRunningAttemptsAlone(t *testing.T) {
	for _, at := range situations[1:] {
		l := ledgerAt(t, at)
		task := *l.task()
		for _, seen := range []events.Millis{0, task.StartedAt, task.StartedAt + 100_000} {
			served, err := command.DecodePage(command.EncodePage(listing.Found{Tasks: []*projection.Task{&task}}, command.Sightings{task.Node: seen}, "c"))
			if err != nil {
				t.Fatal(err)
			}
			got := &served.Tasks[0]
			recheck, lost := task.RecheckNotBefore(), task.LostNotBefore()
			if task.OnNode() {
				from := max(task.StartedAt, seen)
				recheck, lost = from+task.Lease/3, from+task.Lease
			}
			if got.RecheckNotBefore() != recheck || got.LostNotBefore() != lost || got.ScheduleNotBefore() != task.ScheduleNotBefore() {
				t.Errorf("%s, node seen at %d: stamps %d and %d, want %d and %d", at, seen, got.RecheckNotBefore(), got.LostNotBefore(), recheck, lost)
			}
		}
		if task.OnNode() && task.Due != 0 {
			t.Errorf("%s: the task itself was changed", at)
		}
	}
}
