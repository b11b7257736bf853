package shard_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// A clock at 0 makes the one decision that the fold refuses and nothing else prevents: a task without a scheduled
// time.
func TestOwner_RefusesTheCommandOfABugAndServesOn(t *testing.T) {
	b := newFixture(t)
	b.time = 0
	l := b.next("c-1", command.LaneSubmit, submitOf(events.Policy{}), &command.Operate{Task: "x", Do: command.DoSuspend})
	b.deliver(l)
	b.turn()
	if len(l.got) != 1 || l.got[0][0].Code != command.AnswerBug || l.got[0][1].Code != command.AnswerNotFound || b.sealed() != 0 {
		t.Errorf("answers %+v, %d entries", l.got, b.sealed())
	}
	if s := b.report(); s.Bugs != 1 {
		t.Errorf("the shard tells of %d bugs, want 1", s.Bugs)
	}
	b.time = benchStart
	b.submit(events.Policy{})
	if s := b.report(); s.Bugs != 1 || s.Live != 1 {
		t.Errorf("after a submit the shard tells %+v", s)
	}
}

// report is what the owner tells of its shard.
func (b *fixture) report() *command.ShardReport {
	b.Helper()
	s, err := command.ReadTold[command.ShardReport](b.ask(command.LaneQuery, &command.Info{}).Data)
	if err != nil {
		b.Fatal(err)
	}
	return &s
}
