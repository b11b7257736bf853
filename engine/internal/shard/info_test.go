package shard_test

import (
	"fmt"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

func TestInfo_TellsOfAttemptsThatRunOnAfterTheirTimeOut(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{Timeout: time.Minute})
	_, attempt := b.assign()
	over := attempt.StartedAt.Add(time.Minute)
	for _, c := range []struct {
		at      events.Millis
		overdue int64
	}{{over, 0}, {over + 19_000, 0}, {over + 30_000, 1}} {
		b.time = c.at
		if s := b.report(); s.Needs.Overdue != c.overdue || s.Needs.OverdueSince != c.overdue*int64(over) {
			t.Errorf("%d ms after the time-out: %d, since %d", c.at-over, s.Needs.Overdue, s.Needs.OverdueSince)
		}
	}
	b.accept(command.LaneWork, report(attempt, command.Failed))
	if s := b.report(); s.Needs.Overdue != 0 {
		t.Errorf("it has ended, and is told of: %+v", s)
	}
	b.node.refusal = "the store holds too much"
	if s := b.report(); s.Needs.Refuses != b.node.refusal {
		t.Errorf("the refusal is %q", s.Needs.Refuses)
	}
}

// An attempt without a time-out may run for ever.
func TestInfo_TellsOfNoAttemptWithoutATimeOut(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.assign()
	b.time += events.Millis((1000 * time.Hour).Milliseconds())
	if s := b.report(); s.Needs.Overdue != 0 || s.Needs.Refuses != "" {
		t.Errorf("%+v", s)
	}
}

// What may start and waits is told once it has waited for a minute, by when it could start and not by when it was made.
func TestInfo_TellsOfTasksThatMayStartAndWait(t *testing.T) {
	b := newFixture(t)
	began := b.time
	late := submitOf(events.Policy{})
	late.Task, late.NotBefore = "late", began.Add(time.Hour)
	b.accept(command.LaneSubmit, late)
	b.submit(events.Policy{})
	began = b.task().CreatedAt
	for _, c := range []struct {
		after time.Duration
		tasks int64
		since events.Millis
	}{
		{59 * time.Second, 0, 0},
		{61 * time.Second, 1, began},
		{time.Hour + 30*time.Second, 1, began},
		{time.Hour + 61*time.Second, 2, began},
	} {
		b.time = began.Add(c.after)
		b.turn()
		if s := b.report(); s.Waits.Tasks != c.tasks || events.Millis(s.Waits.Since) != c.since {
			t.Errorf("after %s: %+v, want %d since %d", c.after, s.Waits, c.tasks, c.since)
		}
	}
}

// A count looks at so many tasks that it holds up no turn, and says so; the first one is told all the same.
func TestInfo_LooksAtABoundedNumberOfTasksThatWait(t *testing.T) {
	b := newFixture(t)
	began := b.time
	const all = 2500
	for n := range all {
		s := submitOf(events.Policy{})
		s.Task = events.TaskID(fmt.Sprint("t", n))
		b.accept(command.LaneSubmit, s)
		if n%100 == 0 {
			b.turn()
		}
	}
	for range all / 100 {
		b.turn()
	}
	b.time = began.Add(time.Hour)
	b.turn()
	s := b.report()
	if s.Ready != all || s.Waits.Tasks != 2000 || !s.Waits.More || s.Waits.Since == 0 || events.Millis(s.Waits.Since) > began+1000 {
		t.Errorf("%d are ready, and %+v wait since %d", s.Ready, s.Waits, began)
	}
}
