package command_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
)

// behindEntry lets a decider give tasks back to times before that of its entry, which the fold refuses.
func behindEntry(d *command.Decider) { d.Now -= 10 }

// runningTasks makes tasks that run on a node.
func runningTasks(l *journalDriver, ids ...events.TaskID) {
	for _, id := range ids {
		startedAs(l, id)
	}
}

func TestDecide_BugBeforeTheFirstEventRefusesItsCommandOnly(t *testing.T) {
	l := newJournalDriver(t)
	runningTasks(l, "a", "b")
	digest := l.state.Digest(nil)
	release := func(id events.TaskID) *command.Complete {
		return &command.Complete{Task: id, Started: l.state.Task(id).Started, Node: "n-1", How: command.Released}
	}
	kinds := l.entry(func(d *command.Decider) {
		d.Origin, d.Sender = d.Entry.AddOrigin(events.Origin{Sender: "c-1", Number: 1}), "c-1"
		behindEntry(d)
		a := d.Decide(release("a"))
		if a.Code != command.AnswerBug || !strings.Contains(a.Text, "task a") || len(d.Bugs) != 1 || !strings.Contains(d.Bugs[0].Error(), "c-1") {
			t.Errorf("answer %+v, bugs %v", a, d.Bugs)
		}
		if err := a.Err("a"); err == nil || !strings.Contains(err.Error(), "bug") {
			t.Errorf("the caller is told %v", err)
		}
		l.legal(d)
		if len(d.Entry.Entry.Events) != 0 || d.State.Digest(nil) != digest {
			t.Error("it has left a trace")
		}
		d.Now += 10
		if a := d.Decide(release("b")); a.Code != command.AnswerOK {
			t.Errorf("the next command: answer %+v", a)
		}
		l.legal(d)
		d.Entry.SetAnswers(nil)
	})
	if len(kinds) != 1 || !l.state.Task("a").OnNode() || l.state.Task("b").OnNode() {
		t.Errorf("events %v, a is %s, b is %s", kinds, l.state.Task("a").Phase(), l.state.Task("b").Phase())
	}
}

func TestDecide_BugAfterAnEventSpoilsTheEntry(t *testing.T) {
	l := newJournalDriver(t)
	runningTasks(l, "a", "b")
	l.entry(func(d *command.Decider) {
		d.OffersAnswered = func(string, uint64) {}
		d.Note = func(*projection.Task, *events.Event) { behindEntry(d) }
		d.Decide(&command.Reconcile{Node: "n-1"})
		if len(d.Entry.Entry.Events) != 1 || d.Err == nil || len(d.Bugs) > 0 {
			t.Errorf("%d events, bugs %v, error %v; want one event, and the entry spoilt", len(d.Entry.Entry.Events), d.Bugs, d.Err)
		}
		spoilt := d.Err
		if d.Decide(&command.Operate{Task: "b", Do: command.DoSuspend}); d.Err != spoilt || len(d.Bugs) > 0 || len(d.Entry.Entry.Events) != 1 {
			t.Errorf("the next command: %d events, bugs %v, error %v", len(d.Entry.Entry.Events), d.Bugs, d.Err)
		}
		d.Entry.Entry.Events = nil
	})
}

// What the owner decides by itself has no command that could be refused.
func TestDecide_BugOfTheOwnerSpoilsTheEntry(t *testing.T) {
	l := newJournalDriver(t)
	l.decide(l.ask(events.Policy{}))
	l.entry(func(d *command.Decider) {
		d.Start(l.task(), "", 0, 0)
		if d.Err == nil || len(d.Bugs) > 0 || len(d.Entry.Entry.Events) > 0 {
			t.Errorf("%d events, bugs %v, error %v", len(d.Entry.Entry.Events), d.Bugs, d.Err)
		}
	})
}
