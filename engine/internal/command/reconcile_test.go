package command_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
)

// Counts of attempts at which the parts of a Reconcile begin and end.
var reconcileCounts = []int{0, 1, command.MaxReconciled - 1, command.MaxReconciled, command.MaxReconciled + 1, 2 * command.MaxReconciled, 3*command.MaxReconciled + 1}

// covers reports whether a part would list an attempt that started there.
func covers(c *command.Reconcile, started events.Ref) bool {
	return started >= c.From && (c.To == 0 || started < c.To)
}

// reconcile decides a part for an owner whose ownership began with an entry. It returns the attempts that are over,
// and whether all that had to be released were.
func reconcile(t checker, d *command.Decider, c *command.Reconcile, self string, began uint64) (over []command.AttemptName, all bool) {
	t.Helper()
	answered := uint64(0)
	d.Self, d.Began, d.Epoch = self, began, c.Epoch
	d.OffersAnswered = func(_ string, through uint64) { answered = through }
	a := d.Decide(c)
	over, err := command.DecodeNames(a.Data)
	if err != nil || answered != c.Answered || a.Code != command.AnswerOK && a.Code != command.AnswerTryAgain {
		t.Fatalf("%+v, offers answered up to %d, %v", a, answered, err)
	}
	return over, a.Code == command.AnswerOK
}

func TestReconcile_PartsAreBoundedAndCoverEveryStartOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var attempts []command.AttemptName
		for i := range rapid.SampledFrom(reconcileCounts).Draw(t, "attempts") {
			attempts = append(attempts, command.AttemptName{"x", events.RefOf(uint64(i/3), i%3)})
		}
		order := rapid.Uint64().Draw(t, "order")
		slices.SortFunc(attempts, func(a, b command.AttemptName) int {
			return cmp.Compare(uint64(a.Started)*order, uint64(b.Started)*order)
		})
		parts := command.ReconcileParts(command.Reconcile{Node: "far", Answered: 7}, slices.Clone(attempts))
		coverers := func(started events.Ref) (all []*command.Reconcile) {
			for _, c := range parts {
				if covers(c, started) {
					all = append(all, c)
				}
			}
			return all
		}
		listed := 0
		for _, c := range parts {
			if listed += len(c.Attempts); len(c.Attempts) > command.MaxReconciled || c.Node != "far" || c.Answered != 7 {
				t.Fatalf("part lists %d attempts of %q, answered %d", len(c.Attempts), c.Node, c.Answered)
			}
		}
		if listed != len(attempts) {
			t.Fatalf("%d attempts are listed, want %d", listed, len(attempts))
		}
		for _, a := range attempts {
			if by := coverers(a.Started); len(by) != 1 || !slices.Contains(by[0].Attempts, a) {
				t.Fatalf("attempt %x is covered by %d parts, or not listed by the one that covers it", a.Started, len(by))
			}
		}
		for _, bound := range []events.Ref{0, events.Ref(rapid.Uint64().Draw(t, "any")), 1<<64 - 1} {
			if by := coverers(bound); len(by) != 1 {
				t.Fatalf("%x is covered by %d parts", bound, len(by))
			}
		}
	})
}

// crowd lets a node run as many tasks as asked for, all by its offer 1, and returns their attempts as they started.
func crowd(t *testing.T, n int) (*journalDriver, []command.AttemptName) {
	const perEntry = 1000
	l := newJournalDriver(t)
	for first := 0; first < n; first += perEntry {
		l.entry(func(d *command.Decider) {
			for i := first; i < min(first+perEntry, n); i++ {
				c := l.ask(events.Policy{})
				c.Task = events.TaskID(fmt.Sprint("task", i))
				d.Decide(c)
				d.Start(d.State.Task(c.Task), "far", 1, time.Second)
			}
		})
	}
	var attempts []command.AttemptName
	for task := range l.state.Running("far") {
		attempts = append(attempts, command.AttemptName{task.ID, task.Started})
	}
	slices.SortFunc(attempts, func(a, b command.AttemptName) int { return cmp.Compare(a.Started, b.Started) })
	if len(attempts) != n {
		t.Fatalf("%d attempts run, want %d", len(attempts), n)
	}
	return l, attempts
}

func TestReconcile_OfManyAttemptsReleasesExactlyTheMissingOne(t *testing.T) {
	const n = 2*command.MaxReconciled + 2
	for _, i := range []int{0, 1, command.MaxReconciled - 1, command.MaxReconciled, command.MaxReconciled + 1, 2*command.MaxReconciled - 1, 2 * command.MaxReconciled, n - 1} {
		l, attempts := crowd(t, n)
		missing := attempts[i]
		for _, c := range command.ReconcileParts(command.Reconcile{Node: "far", Answered: 1}, slices.Delete(attempts, i, i+1)) {
			var over []command.AttemptName
			kinds := l.entry(func(d *command.Decider) { over, _ = reconcile(t, d, c, "self", 1) })
			var want []string
			if covers(c, missing.Started) {
				want = []string{"Released"}
			}
			if !slices.Equal(kinds, want) || len(over) > 0 {
				t.Fatalf("without attempt %d the part from %x to %x leads to %v, over are %v", i, c.From, c.To, kinds, over)
			}
		}
		if got := l.state.Task(missing.Task); got.Phase() != projection.Waiting {
			t.Fatalf("task of attempt %d is %s, want released", i, got.Phase())
		}
	}
}

// The largest part, and its answer when every attempt is over, must pass the limits of batch, answer and entry.
func TestReconcile_LargestPartFitsBatchAndEntry(t *testing.T) {
	long := make([]byte, events.MaxIDBytes)
	for i := range long {
		long[i] = 'x'
	}
	var attempts []command.AttemptName
	for i := range command.MaxReconciled {
		attempts = append(attempts, command.AttemptName{events.TaskID(long), events.RefOf(1<<40, i)})
	}
	c := command.ReconcileParts(command.Reconcile{Node: "far", Answered: 1}, attempts)[0]
	const others = command.MaxBatchBytes // of the batch that it comes with
	if got := others + c.Size(); got > command.MaxAnswerBytes {
		t.Errorf("batch of %d bytes, want at most %d", got, command.MaxAnswerBytes)
	}
	if got := others + c.Size() + events.SealEntryBytes; got > events.MaxEntryBytes {
		t.Errorf("entry of %d bytes, want at most %d", got, events.MaxEntryBytes)
	}
}

// An entry takes no more releases. Nobody would call again for the rest, so the command itself comes again.
func TestReconcile_ThatFillsAnEntryComesAgainForTheRest(t *testing.T) {
	l := newJournalDriver(t)
	const n = 4000
	for first := 0; first < n; first += 500 {
		l.entry(func(d *command.Decider) {
			for i := range 500 {
				c := l.ask(events.Policy{})
				c.Task = events.TaskID(fmt.Sprintf("%0*d", events.MaxIDBytes, first+i))
				d.Decide(c)
				d.Start(d.State.Task(c.Task), "far", 1, time.Second)
			}
		})
	}
	for calls := 1; ; calls++ {
		var all bool
		l.entry(func(d *command.Decider) {
			_, all = reconcile(t, d, &command.Reconcile{Node: "far", Answered: 1}, "self", 1)
		})
		if all {
			if calls < 2 {
				t.Error("all were released by one entry: the test shows nothing")
			}
			break
		}
	}
	for task := range l.state.Running("far") {
		t.Fatalf("task %s still runs", task.ID)
	}
}
