package shard_test

import (
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
		if s := b.report(); s.Overdue != c.overdue || s.OverdueSince != c.overdue*int64(over) {
			t.Errorf("%d ms after the time-out: %d, since %d", c.at-over, s.Overdue, s.OverdueSince)
		}
	}
	b.accept(command.LaneWork, report(attempt, command.Failed))
	if s := b.report(); s.Overdue != 0 {
		t.Errorf("it has ended, and is told of: %+v", s)
	}
	b.node.refusal = "the store holds too much"
	if s := b.report(); s.Refuses != b.node.refusal {
		t.Errorf("the refusal is %q", s.Refuses)
	}
}

// An attempt without a time-out may run for ever.
func TestInfo_TellsOfNoAttemptWithoutATimeOut(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.assign()
	b.time += events.Millis((1000 * time.Hour).Milliseconds())
	if s := b.report(); s.Overdue != 0 || s.Refuses != "" {
		t.Errorf("%+v", s)
	}
}
