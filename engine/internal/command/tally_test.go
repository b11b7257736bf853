package command_test

import (
	"fmt"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/testkit"
)

// Of more behaviors than are told apart the same ones are at every question.
func TestTally_TellsTheFirstBehaviorsByNameApart(t *testing.T) {
	l := newJournalDriver(t)
	for _, i := range testkit.Rand(t).Perm(600) {
		submit := l.ask(events.Policy{})
		submit.Task, submit.Behavior = events.TaskID(fmt.Sprint("t", i)), fmt.Sprintf("b-%03d", i)
		l.decide(submit)
	}
	s := l.state
	for range 3 {
		rows, err := command.DecodeTallies(command.EncodeTallies(s, &command.Tally{}))
		if err != nil || len(rows) != 501 || rows[500].Behavior != "" || rows[500].Tasks != 100 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i, row := range rows[:500] {
			if want := fmt.Sprintf("b-%03d", i); row.Behavior != want || row.Tasks != 1 {
				t.Fatalf("row %d is of %d tasks of %s, want 1 of %s", i, row.Tasks, row.Behavior, want)
			}
		}
	}
	rows, err := command.DecodeTallies(command.EncodeTallies(s, &command.Tally{Behavior: "b-599"}))
	if err != nil || len(rows) != 1 || rows[0].Behavior != "b-599" || rows[0].Tasks != 1 {
		t.Errorf("of one behavior: %+v, %v", rows, err)
	}
}
