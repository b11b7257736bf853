package command_test

import (
	"fmt"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection/settings"
)

func TestPause_RecordsEachChangeOnce(t *testing.T) {
	l := newJournalDriver(t)
	for _, row := range []struct {
		behavior, reason string
		paused           bool
		events           string
		want             string
	}{
		{"b", "", false, "", "[]"},
		{"b", "a deployment", true, "Paused", "[behavior b is paused by ada: a deployment]"},
		{"b", "another", true, "", "[behavior b is paused by ada: a deployment]"},
		{"a", "", true, "Paused", "[behavior a is paused by ada behavior b is paused by ada: a deployment]"},
		{"b", "", false, "Unpaused", "[behavior a is paused by ada]"},
		{"a", "", false, "Unpaused", "[]"},
	} {
		var a command.Answer
		kinds := l.entry(func(d *command.Decider) {
			d.Origin = d.Entry.AddOrigin(events.Origin{Sender: "s", Number: 1, Caller: events.Caller{Principal: "ada"}})
			if a = d.Decide(&command.Pause{row.behavior, row.paused, row.reason}); len(d.Entry.Entry.Events) == 0 {
				d.Entry.DropOrigin()
			}
		})
		if got := strings.Join(kinds, " "); a.Code != command.AnswerOK || got != row.events {
			t.Errorf("pause %s %t: answer %+v with events %q, want %q", row.behavior, row.paused, a, got, row.events)
		}
		if got := fmt.Sprint(settings.Of(l.state).Pauses()); got != row.want {
			t.Errorf("pause %s %t: %s, want %s", row.behavior, row.paused, got, row.want)
		}
	}
	if l.state.Len() != 0 {
		t.Errorf("the settings have left %d tasks", l.state.Len())
	}
}

func TestPause_RefusesWhatBreaksALimit(t *testing.T) {
	for want, c := range map[string]*command.Pause{
		`behavior id "No Behavior"`: {"No Behavior", true, ""},
		`behavior id "Nor This"`:    {"Nor This", false, ""},
		"reason: 257 exceeds":       {"work", true, strings.Repeat("x", events.MaxNameBytes+1)},
	} {
		l := newJournalDriver(t)
		if a, kinds := l.decide(c); a.Code != command.AnswerInvalid || !strings.Contains(a.Text, want) || kinds != nil {
			t.Errorf("answer %+v with events %v, want %q", a, kinds, want)
		}
	}
}
