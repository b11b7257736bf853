package shard_test

import (
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// runAgain gives task "x", which must wait, to the far node once more.
func (b *fixture) runAgain() projection.Task {
	b.Helper()
	b.turn()
	_, t := b.assign()
	return t
}

// lose tells the owner that the far node is gone.
func (b *fixture) lose() {
	b.Helper()
	b.own.Inbox().Lose(farID)
	b.turn()
}

// wantStale asserts that an outcome is refused and leaves no trace.
func (b *fixture) wantStale(c *command.Complete) {
	b.Helper()
	written := b.sealed()
	if a := b.ask(command.LaneWork, c); a.Code != command.AnswerStale {
		b.Errorf("late outcome is answered %d, want %d", a.Code, command.AnswerStale)
	}
	if b.sealed() != written {
		b.Errorf("late outcome was recorded: %s", b.kinds())
	}
}

// The same node, the same task, another attempt: only the position of the Started tells.
func TestComplete_OutcomeOfAnEarlierAttemptIsRefused(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, first := b.assign()
	b.accept(command.LaneWork, report(first, command.Released))
	second := b.runAgain()
	b.wantStale(report(first, command.Succeeded))
	b.accept(command.LaneWork, report(second, command.Succeeded))
}

// The same node, the same task, attempt 1 both times: the node was sending the outcome again while the task was
// deleted and submitted anew.
func TestComplete_OutcomeOfAnEarlierLifeIsRefused(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, first := b.assign()
	b.accept(command.LaneWork, report(first, command.Succeeded))
	b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoDelete})
	b.submit(events.Policy{})
	_, second := b.assign()
	if first.Attempt != second.Attempt || first.Node != second.Node {
		t.Fatalf("attempts %d on %s and %d on %s, want equal", first.Attempt, first.Node, second.Attempt, second.Node)
	}
	b.wantStale(report(first, command.Failed))
	b.accept(command.LaneWork, report(second, command.Succeeded))
}

func TestComplete_OutcomeFromAnotherNodeIsRefused(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, task := b.assign()
	c := report(task, command.Succeeded)
	c.Node = "third"
	b.wantStale(c)
}

func TestComplete_SecondOutcomeOfAnAttemptIsRefused(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, task := b.assign()
	b.accept(command.LaneWork, report(task, command.Failed))
	b.wantStale(report(task, command.Succeeded))
}

// The node was paused past its session; its task was lost and ran elsewhere.
func TestComplete_OutcomeOfALostAttemptIsRefused(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, task := b.assign()
	b.lose()
	b.wantStale(report(task, command.Succeeded))
	if got := b.task(); got.Phase() != projection.Waiting || got.Lost != 1 {
		t.Errorf("task is %s, lost %d times", got.Phase(), got.Lost)
	}
}

// Losses count from the last end of a run: an hourly task must survive its sixth restart in a life.
func TestLoss_SuccessGivesAFreshBudget(t *testing.T) {
	b := newFixture(t)
	policy := events.Policy{MaxLost: 2, Existing: events.RunAgain}
	b.submit(policy)
	for run := range 3 {
		b.assign()
		b.lose()
		b.assign()
		if got := b.task(); got.Lost != 1 {
			t.Fatalf("run %d: lost %d times, want 1", run+1, got.Lost)
		}
		b.accept(command.LaneWork, report(b.task(), command.Succeeded))
		b.submit(policy)
	}
	b.assign()
	b.lose()
	b.assign()
	b.lose()
	if got := b.task(); got.Status != task.Failure || got.Error.Code != events.CodeLost || !got.Final() {
		t.Errorf("task is %s, %+v; want the final failure %q after two losses of one run", got.Phase(), got.Error, events.CodeLost)
	}
}

func TestCancel_SuccessThatComesFirstCounts(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.assign()
	b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoCancel})
	c := report(b.task(), command.Succeeded)
	c.Next = b.time.Add(time.Hour)
	b.accept(command.LaneWork, c)
	if got := b.task(); got.Status != task.Success || !got.Final() {
		t.Errorf("task is %s, due %d; want SUCCESS for good", got.Phase(), got.Due)
	}
}

func TestCancel_NothingStartsAfterIt(t *testing.T) {
	for name, end := range map[string]func(b *fixture){
		"Failed":   func(b *fixture) { b.accept(command.LaneWork, byPolicyFailure(b.task())) },
		"Snoozed":  func(b *fixture) { b.accept(command.LaneWork, report(b.task(), command.Snoozed)) },
		"Released": func(b *fixture) { b.accept(command.LaneWork, report(b.task(), command.Released)) },
		"Lost":     (*fixture).lose,
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.submit(events.Policy{})
			b.assign()
			b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoCancel})
			b.deliver(b.offer())
			end(b)
			b.time = b.time.Add(2 * time.Hour)
			b.own.Inbox().Wake()
			b.turn()
			if got := b.task(); got.Status != task.Failure || got.Error.Code != events.CodeCancelled || !got.Final() {
				t.Errorf("task is %s, %+v, due %d; want the final failure %q", got.Phase(), got.Error, got.Due, events.CodeCancelled)
			}
		})
	}
}

func byPolicyFailure(t projection.Task) *command.Complete {
	c := report(t, command.Failed)
	c.ByPolicy = true
	return c
}

// A task that repeats is cancelled while it waits for its next run: that run is what a future would wait for.
func TestCancel_BetweenRunsTakesTheNextRunAway(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.assign()
	c := report(b.task(), command.Succeeded)
	c.Next = b.time.Add(time.Hour)
	b.accept(command.LaneWork, c)
	b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoCancel})
	b.time = b.time.Add(2 * time.Hour)
	b.deliver(b.offer())
	b.turn()
	if got := b.task(); got.Status != task.Success || !got.Final() {
		t.Errorf("task is %s, due %d; want SUCCESS for good", got.Phase(), got.Due)
	}
}

// touch writes an entry, some time later.
func (b *fixture) touch(id events.TaskID, later time.Duration) {
	b.Helper()
	b.time = b.time.Add(later)
	c := submitOf(events.Policy{})
	c.Task, c.NotBefore = id, b.time.Add(time.Hour)
	b.accept(command.LaneSubmit, c)
}
