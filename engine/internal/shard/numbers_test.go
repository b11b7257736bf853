package shard_test

import (
	"reflect"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// numbered are the commands that would do harm if they were decided twice, each with what has to happen before.
var numbered = map[string]struct {
	prepare func(b *fixture)
	command func(b *fixture) command.Command
}{
	"Submit":          {func(*fixture) {}, func(*fixture) command.Command { return submitOf(events.Policy{}) }},
	"events.RunAgain": {finished, func(*fixture) command.Command { return submitOf(events.Policy{Existing: events.RunAgain}) }},
	"Retry":           {finished, func(*fixture) command.Command { return &command.Operate{Task: "x", Do: command.DoRetry} }},
	"Delete":          {finished, func(*fixture) command.Command { return &command.Operate{Task: "x", Do: command.DoDelete} }},
	"RunNow":          {scheduled, func(*fixture) command.Command { return &command.Operate{Task: "x", Do: command.DoRunNow} }},
	"Cancel":          {scheduled, func(*fixture) command.Command { return &command.Operate{Task: "x", Do: command.DoCancel} }},
	"Merge": {scheduled, func(b *fixture) command.Command {
		c := &command.Merge{Submit: *submitOf(events.Policy{}), Life: b.task().Created, Seq: b.task().Seq}
		c.Submit.Params, c.Submit.NotBefore = events.JSON([]byte("1")), b.time.Add(time.Hour)
		return c
	}},
	"Complete": {running, func(b *fixture) command.Command { return report(b.task(), command.Succeeded) }},
	"Fail":     {running, func(b *fixture) command.Command { return report(b.task(), command.Failed) }},
	"Snooze":   {running, func(b *fixture) command.Command { return report(b.task(), command.Snoozed) }},
}

func scheduled(b *fixture) {
	c := submitOf(events.Policy{})
	c.NotBefore = b.time.Add(time.Hour)
	b.accept(command.LaneSubmit, c)
}

func running(b *fixture) {
	b.submit(events.Policy{})
	b.assign()
}

func finished(b *fixture) {
	running(b)
	b.accept(command.LaneWork, report(b.task(), command.Succeeded))
}

// The owner commits, its answer is lost, it dies. The sender sends the same bytes to the next owner, which knows the
// journal alone.
func TestNumbers_DecidedBatchIsAnsweredAgainByTheNextOwner(t *testing.T) {
	for name, row := range numbered {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			row.prepare(b)
			l := b.next("sender", command.LaneSubmit, row.command(b))
			if name == "Complete" || name == "Fail" || name == "Snooze" {
				l = b.next("sender", command.LaneWork, l.batch.Commands...)
			}
			b.deliver(l)
			b.turn()
			written := b.sealed()
			b.takeOver()
			b.deliver(l)
			b.turn()
			if b.sealed() != written {
				t.Errorf("decided again: events are %s", b.kinds())
			}
			if len(l.got) != 2 || !reflect.DeepEqual(l.got[0], l.got[1]) {
				t.Errorf("answers are %+v, want the same twice", l.got)
			}
		})
	}
}

// One copy comes over the bus, one through the mailbox; both wait in the inbox, and one more comes when the run has
// ended.
func TestNumbers_SameBatchByTwoWaysIsDecidedOnce(t *testing.T) {
	b := newFixture(t)
	finished(b)
	l := b.next("sender", command.LaneSubmit, submitOf(events.Policy{Existing: events.RunAgain}))
	b.deliver(l)
	b.post(l)
	b.turn()
	b.assign()
	b.accept(command.LaneWork, report(b.task(), command.Succeeded))
	b.deliver(l)
	b.turn()
	if task := b.task(); !task.Final() || task.Runs != 2 {
		t.Errorf("task is %s after %d runs, due %d; want two runs, no more", task.Phase(), task.Runs, task.Due)
	}
	if len(l.got) != 3 || !reflect.DeepEqual(l.got[0], l.got[1]) || !reflect.DeepEqual(l.got[0], l.got[2]) {
		t.Errorf("answers are %+v, want the same three times", l.got)
	}
}

// The answer to a run-again submit is lost while its run goes on and ends; then the batch comes again.
func TestNumbers_RunAgainResentAfterItsRunDoesNotRunAgain(t *testing.T) {
	b := newFixture(t)
	finished(b)
	l := b.next("sender", command.LaneSubmit, submitOf(events.Policy{Existing: events.RunAgain}))
	b.deliver(l)
	b.turn()
	b.assign()
	b.accept(command.LaneWork, report(b.task(), command.Succeeded))
	b.takeOver()
	b.deliver(l)
	b.turn()
	if task := b.task(); !task.Final() || task.Runs != 2 {
		t.Errorf("task is %s after %d runs, due %d; want two runs, no more", task.Phase(), task.Runs, task.Due)
	}
	if len(l.got) != 2 || l.got[0][0].Run != 2 || l.got[1][0].Run != 2 {
		t.Errorf("answers are %+v, want run 2 twice", l.got)
	}
}

// The task ran and was forgotten before its submit was answered.
func TestNumbers_ForgottenTaskIsNotCreatedAgainByItsOwnSubmit(t *testing.T) {
	b := newFixture(t)
	l := b.next("sender", command.LaneSubmit, submitOf(events.Policy{Retain: time.Millisecond}))
	b.deliver(l)
	b.turn()
	b.assign()
	b.accept(command.LaneWork, report(b.task(), command.Succeeded))
	b.time = b.time.Add(time.Minute)
	other := submitOf(events.Policy{})
	other.Task = "y"
	b.accept(command.LaneSubmit, other) // an entry of a later time
	if b.own.State().Task("x") != nil {
		t.Fatal("task x is still there")
	}
	b.takeOver()
	b.deliver(l)
	b.turn()
	if b.own.State().Task("x") != nil {
		t.Error("task x was created again")
	}
	if len(l.got) != 2 || !reflect.DeepEqual(l.got[0], l.got[1]) {
		t.Errorf("answers are %+v, want the same twice", l.got)
	}
}

// A batch that was overtaken is one whose sender no longer waits: deciding it would be deciding it late.
func TestNumbers_EarlierBatchThanTheLastIsNotDecided(t *testing.T) {
	for name, between := range map[string]func(b *fixture){"SameOwner": func(*fixture) {}, "NextOwner": (*fixture).takeOver} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			finished(b)
			cancel := b.next("sender", command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoDelete})
			later := b.next("sender", command.LaneSubmit, submitOf(events.Policy{Existing: events.RunAgain}))
			b.deliver(later)
			b.turn()
			between(b)
			written := b.sealed()
			b.deliver(cancel)
			b.turn()
			if b.sealed() != written || len(cancel.got) != 0 {
				t.Errorf("an overtaken batch was decided: %s, answered %+v", b.kinds(), cancel.got)
			}
		})
	}
}
