package command_test

import (
	"slices"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

func TestPause_RecordsEachChangeOnce(t *testing.T) {
	l := newJournalDriver(t)
	for _, row := range []struct {
		behavior string
		paused   bool
		events   string
		want     []string
	}{
		{"b", false, "", nil},
		{"b", true, "Created Suspended", []string{"b"}},
		{"b", true, "", []string{"b"}},
		{"a", true, "Merged", []string{"a", "b"}},
		{"b", false, "Merged", []string{"a"}},
		{"a", false, "Merged", []string{}},
	} {
		a, kinds := l.decide(&command.Pause{row.behavior, row.paused})
		if got := strings.Join(kinds, " "); a.Code != command.AnswerOK || got != row.events {
			t.Errorf("pause %s %t: answer %+v with events %q, want %q", row.behavior, row.paused, a, got, row.events)
		}
		if got, err := command.ReadSettings(l.state.Task(events.Settings)); err != nil || !slices.Equal(got.Paused, row.want) {
			t.Errorf("pause %s %t: paused are %v, %v, want %v", row.behavior, row.paused, got.Paused, err, row.want)
		}
	}
	for do := range command.OperationCount {
		if a, kinds := l.decide(&command.Operate{Task: events.Settings, Do: do}); a.Code != command.AnswerState || kinds != nil {
			t.Errorf("%s of the settings: answer %+v with events %v", do, a, kinds)
		}
	}
	l.state.Ripen(l.now)
	if got := l.state.Ready(l.state.Task(events.Settings).Kind.Behavior); got != nil {
		t.Error("the settings are ready to run")
	}
}
