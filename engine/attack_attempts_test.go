package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
)

// runAgain gives task "x", which must wait, to the far node once more.
func (b *bench) runAgain() projection.Task {
	b.Helper()
	b.turn()
	_, t := b.assign()
	return t
}

// lose tells the owner that the far node is gone.
func (b *bench) lose() {
	b.Helper()
	b.own.inbox.lose(farID)
	b.turn()
}

// wantStale asserts that an outcome is refused and leaves no trace.
func (b *bench) wantStale(c *command.Complete) {
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
	b := newBench(t, -1)
	b.submit(Policy{})
	_, first := b.assign()
	b.accept(command.LaneWork, report(first, command.Released))
	second := b.runAgain()
	b.wantStale(report(first, command.Succeeded))
	b.accept(command.LaneWork, report(second, command.Succeeded))
}

// The same node, the same task, attempt 1 both times: the node was sending the outcome again while the task was deleted
// and submitted anew.
func TestComplete_OutcomeOfAnEarlierLifeIsRefused(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	_, first := b.assign()
	b.accept(command.LaneWork, report(first, command.Succeeded))
	b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoDelete})
	b.submit(Policy{})
	_, second := b.assign()
	if first.Attempt != second.Attempt || first.Node != second.Node {
		t.Fatalf("attempts %d on %s and %d on %s, want equal", first.Attempt, first.Node, second.Attempt, second.Node)
	}
	b.wantStale(report(first, command.Failed))
	b.accept(command.LaneWork, report(second, command.Succeeded))
}

func TestComplete_OutcomeFromAnotherNodeIsRefused(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	_, task := b.assign()
	c := report(task, command.Succeeded)
	c.Node = "third"
	b.wantStale(c)
}

func TestComplete_SecondOutcomeOfAnAttemptIsRefused(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	_, task := b.assign()
	b.accept(command.LaneWork, report(task, command.Failed))
	b.wantStale(report(task, command.Succeeded))
}

// The node was paused past its session; its task was lost and ran elsewhere.
func TestComplete_OutcomeOfALostAttemptIsRefused(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	_, task := b.assign()
	b.lose()
	b.wantStale(report(task, command.Succeeded))
	if got := b.task(); got.Phase() != projection.Waiting || got.Lost != 1 {
		t.Errorf("task is %s, lost %d times", got.Phase(), got.Lost)
	}
}

// Losses count from the last end of a run: an hourly task must survive its sixth restart in a life.
func TestLoss_SuccessGivesAFreshBudget(t *testing.T) {
	b := newBench(t, -1)
	policy := Policy{MaxLost: 2, Existing: events.RunAgain}
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
	if got := b.task(); got.Status != projection.Failure || got.Error.Code != events.CodeLost || !got.Final() {
		t.Errorf("task is %s, %+v; want the final failure %q after two losses of one run", got.Phase(), got.Error, events.CodeLost)
	}
}

func TestCancel_SuccessThatComesFirstCounts(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	b.assign()
	b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoCancel})
	c := report(b.task(), command.Succeeded)
	c.Next = b.time.Add(time.Hour)
	b.accept(command.LaneWork, c)
	if got := b.task(); got.Status != projection.Success || !got.Final() {
		t.Errorf("task is %s, due %d; want SUCCESS for good", got.Phase(), got.Due)
	}
}

func TestCancel_NothingStartsAfterIt(t *testing.T) {
	for name, end := range map[string]func(b *bench){
		"Failed":   func(b *bench) { b.accept(command.LaneWork, byPolicyFailure(b.task())) },
		"Snoozed":  func(b *bench) { b.accept(command.LaneWork, report(b.task(), command.Snoozed)) },
		"Released": func(b *bench) { b.accept(command.LaneWork, report(b.task(), command.Released)) },
		"Lost":     (*bench).lose,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, -1)
			b.submit(Policy{})
			b.assign()
			b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoCancel})
			b.deliver(b.offer())
			end(b)
			b.time = b.time.Add(2 * time.Hour)
			b.own.inbox.wake.Notify()
			b.turn()
			if got := b.task(); got.Status != projection.Failure || got.Error.Code != events.CodeCancelled || !got.Final() {
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
	b := newBench(t, -1)
	b.submit(Policy{})
	b.assign()
	c := report(b.task(), command.Succeeded)
	c.Next = b.time.Add(time.Hour)
	b.accept(command.LaneWork, c)
	b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoCancel})
	b.time = b.time.Add(2 * time.Hour)
	b.deliver(b.offer())
	b.turn()
	if got := b.task(); got.Status != projection.Success || !got.Final() {
		t.Errorf("task is %s, due %d; want SUCCESS for good", got.Phase(), got.Due)
	}
}

// What is kept follows from the journal alone. The wall clock of this machine is years ahead of every entry.
func TestForgetting_FollowsEntryTimeNotTheClock(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{Retain: time.Hour})
	b.assign()
	b.accept(command.LaneWork, report(b.task(), command.Succeeded))
	b.touch("early", 59*time.Minute)
	if b.own.state.Task("x") == nil {
		t.Error("forgotten before its time")
	}
	digest := b.own.state.Digest(nil)
	b.takeOver()
	if b.own.state.Digest(nil) != digest {
		t.Error("the next owner's state differs from the one before")
	}
	b.touch("late", 2*time.Minute)
	if b.own.state.Task("x") != nil {
		t.Error("remembered after its time")
	}
}

// touch writes an entry, some time later.
func (b *bench) touch(id events.TaskID, later time.Duration) {
	b.Helper()
	b.time = b.time.Add(later)
	c := submitOf(Policy{})
	c.Task, c.NotBefore = id, b.time.Add(time.Hour)
	b.accept(command.LaneSubmit, c)
}

// The wall clock of the next owner is behind: time must not run back within the shard.
func TestTime_NeverRunsBackWithinAShard(t *testing.T) {
	b := newBench(t, -1)
	b.touch("a", time.Hour)
	before := b.own.state.Time
	b.takeOver()
	b.touch("b", -2*time.Hour)
	if got := b.own.state.Time; got < before || got > before.Add(time.Minute) {
		t.Errorf("entry is of %s, want about %s: that of the entry before", got.Time(), before.Time())
	}
}

// The commit took so long that the session is old when the assignment reaches the executor. If it is renewed after all,
// the task must run: nobody else will ever find out that it does not.
func TestExecutor_CallsNoFunctionWhileTheSessionIsOld(t *testing.T) {
	called := make(chan struct{}, 1)
	b := newBench(t, 1, &plain{id: benchBehavior, run: func(context.Context, Attempt) Outcome {
		called <- struct{}{}
		return Outcome{}
	}})
	freed := make(chan struct{}, 2)
	b.m.exec.Freed = func() { freed <- struct{}{} }
	b.store.commit = func() { b.m.renewed.Store(int64(time.Since(clockBase) - b.m.ttl*3/4)) }
	b.submit(Policy{})
	await(t, freed, "the slot")
	select {
	case <-called:
		t.Fatal("the function was called")
	default:
	}
	b.store.commit = nil
	b.m.renewed.Store(int64(time.Since(clockBase)))
	await(t, b.own.inbox.wake, "word that the attempt is given back")
	b.turn()
	await(t, called, "the attempt after it")
	if fmt.Sprint(b.kinds()) != "[Created Started Released Started]" {
		t.Errorf("events are %s", b.kinds())
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: not within 30s", what)
	}
}

// The session ends while the function runs, which then returns an error, or a result: neither counts.
func TestExecutor_ReportsNothingOfAnEndedSession(t *testing.T) {
	for name, out := range map[string]Outcome{"Success": {}, "Failure": {Err: &events.Error{Code: events.CodeFailed}}} {
		t.Run(name, func(t *testing.T) {
			running := make(chan struct{})
			b := newBench(t, 1, &plain{id: benchBehavior, run: func(ctx context.Context, a Attempt) Outcome {
				close(running)
				<-ctx.Done()
				return out
			}})
			freed := make(chan struct{}, 1)
			b.m.exec.Freed = func() { freed <- struct{}{} }
			session, end := context.WithCancel(t.Context())
			b.m.ctx = session
			for i := range b.m.parents {
				b.m.parents[i] = session
			}
			b.submit(Policy{})
			await(t, running, "the attempt")
			end()
			await(t, freed, "the slot")
			b.m.ctx = t.Context()
			b.turn()
			if task := b.task(); !task.OnNode() {
				t.Errorf("task is %s: %s", task.Phase(), b.kinds())
			}
		})
	}
}

// The view is older than the node that has been given work: absence from a view is a reason to look, and no evidence.
func TestLost_AbsenceFromAViewIsNoEvidence(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	b.assign()
	old := present(1, selfID)
	b.m.view.Store(&old)
	b.m.place.findLost(t.Context())
	b.turn()
	if task := b.task(); !task.OnNode() {
		t.Fatalf("task is %s: %s", task.Phase(), b.kinds())
	}
	b.store.members = present(2, selfID)
	b.m.view.Store(&old)
	b.m.place.findLost(t.Context())
	b.turn()
	if task := b.task(); task.Phase() != projection.Waiting || task.Lost != 1 {
		t.Errorf("task is %s, lost %d times; want it lost with its node: %s", task.Phase(), task.Lost, b.kinds())
	}
}

// A new owner asks etcd, not its view, which of the nodes that the journal names are there.
func TestLost_ANewOwnerAsksWhoIsThere(t *testing.T) {
	b := newBench(t, -1)
	old := present(1, selfID)
	b.m.view.Store(&old)
	if gone, err := b.m.place.isGone(t.Context(), farID); gone || err != nil {
		t.Errorf("gone is %t, %v; the node lives", gone, err)
	}
	b.store.members = present(2, selfID)
	if gone, err := b.m.place.isGone(t.Context(), farID); !gone || err != nil {
		t.Errorf("gone is %t, %v; the node has ended", gone, err)
	}
}

// An owner whose session is old takes on no work, and answers no reads from memory.
func TestOwner_WithAnOldSessionStartsAndShowsNothing(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	b.m.renewed.Store(int64(time.Since(clockBase) - b.m.ttl*2/3))
	offer, read := b.offer(), b.next("reader", command.LaneQuery, &command.Get{Task: "x"})
	b.deliver(offer)
	b.deliver(read)
	b.turn()
	if n := b.count(events.KindStarted); n != 0 {
		t.Errorf("%d attempts were started", n)
	}
	if len(read.got) != 0 {
		t.Errorf("the read was answered %+v", read.got)
	}
}
