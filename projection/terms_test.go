package projection_test

import (
	"testing"
	"time"

	"taskledger/events"
)

// The policy and the priority of the last submit that joined, merged or rescheduled a task hold, in every order that
// they decide: it is started by its new priority and kept as its new policy says.
func TestTerms_OfTheLastSubmitHold(t *testing.T) {
	for name, body := range map[string]func(*events.Terms) events.Body{
		"joined":      func(terms *events.Terms) events.Body { return &events.Joined{Terms: terms} },
		"merged":      func(terms *events.Terms) events.Body { return &events.Merged{Terms: terms} },
		"rescheduled": func(terms *events.Terms) events.Body { return &events.Rescheduled{At: start, Terms: terms} },
	} {
		t.Run(name, func(t *testing.T) {
			j := newJournal(t)
			j.add("other", j.created())
			before := j.add(subject, j.created()).Kind.Policy
			j.seal(time.Hour)
			if first := j.state.Ready("work"); first == nil || first.ID != "other" {
				t.Fatalf("first is %+v, want the task that was there first", first)
			}
			changed := before
			changed.MaxAttempts, changed.Retain = 3, time.Millisecond
			j.add(subject, body(&events.Terms{Policy: changed, Priority: 9}))
			j.add(subject, body(nil))
			if first := j.state.Ready("work"); first == nil || first.ID != subject || first.Priority != 9 || first.Kind.Policy != changed {
				t.Fatalf("first is %+v, want the task with the higher priority and its new policy", first)
			}
			if other := j.state.Task("other"); other.Kind.Policy != before || other.Priority != 0 {
				t.Errorf("another task has %+v and priority %d", other.Kind.Policy, other.Priority)
			}
			j.add(subject, j.started(subject))
			j.add(subject, &events.Succeeded{Run: 1})
			j.seal(time.Second)
			j.add("other", j.started("other"))
			j.seal(0)
			if kept := j.state.Task(subject); kept != nil {
				t.Errorf("kept as the old policy says: %+v", kept)
			}
		})
	}
}
