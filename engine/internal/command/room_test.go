package command_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// completesThatFit returns how many completions of attempts a batch may have that still fits into an entry with an
// origin.
func completesThatFit(l *journalDriver) (n int) {
	l.entry(func(d *command.Decider) {
		defer d.Entry.DropOrigin()
		d.Entry.AddOrigin(events.Origin{Sender: "s"})
		b := &command.Batch{Lane: command.LaneWork}
		for ; !d.Full(b) && n < 100_000; n++ {
			b.Commands = append(b.Commands, &command.Complete{Task: "a/p", Started: 1, Node: "n-1"})
		}
	})
	return n - 1
}

func TestFull_ReckonsWithReturnedBucketsOnlyWhereThereAreWorks(t *testing.T) {
	l := newJournalDriver(t)
	without := completesThatFit(l)
	workAs(l, "a/work", "n-1")
	with := completesThatFit(l)
	size := (&command.Complete{Task: "a/p", Started: 1, Node: "n-1"}).Size()
	if more := l.state.EndBytes(); more == 0 || with*(size+more) > (without+1)*size || (with+2)*(size+more) < without*size {
		t.Errorf("%d completions fit without works and %d with one, %d and %d bytes each", without, with, size, size+more)
	}
	l.decide(&command.Complete{Task: "a/work", Started: l.state.Task("a/work").Started, Node: "n-1"})
	l.decide(&command.Operate{Task: "a/work", Do: command.DoDelete})
	if again := completesThatFit(l); again != without {
		t.Errorf("%d completions fit once the work is gone, want %d", again, without)
	}
}
