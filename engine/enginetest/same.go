package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"

	"taskledger/events"
	"taskledger/ledger"
	"taskledger/task"
)

// Difference describes an attempt that ends otherwise now than it is recorded.
type Difference struct {
	Task     events.TaskID
	Attempt  int
	Recorded string // the recorded outcome, in words
	Now      string // the outcome now, in words
}

// String says what differs.
func (d Difference) String() string {
	return fmt.Sprintf("attempt %d of %s: recorded is %s, now it is %s", d.Attempt, d.Task, d.Recorded, d.Now)
}

// Export returns the history of a task as the command export writes it, for Again and RequireSame.
func (n *Node) Export(t testing.TB, id events.TaskID) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := n.Ledger().ExportTask(t.Context(), id, &file, nil); err != nil {
		t.Fatalf("export %s: %v", id, err)
	}
	return file.Bytes()
}

// RequireSame runs again the attempts in a file that the command export has written. It fails the test where an
// outcome differs from the recorded one, where the file is damaged, and where no attempt is of the behaviors.
func RequireSame(t testing.TB, file string, behaviors ...task.Behavior) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatalf("run a history again: %v", err)
	}
	defer in.Close()
	ran, different, err := Again(t.Context(), in, behaviors...)
	if err == nil && ran == 0 {
		err = fmt.Errorf("no attempt in the file is of the behaviors")
	}
	if err != nil {
		t.Fatalf("run %s again: %v", file, err)
	}
	for _, d := range different {
		t.Errorf("%s: %s", file, d)
	}
}

// Again runs again those attempts of an export that ended with a success, a failure of their own or a snooze: each
// behavior gets the recorded parameters and counts, and what it returns is compared with what is recorded. It returns
// how many it ran, and those that differ. Results are compared as JSON, failures by code, message and whether they
// were final. What an attempt does outside is done again; times that it asks for do not count, nor do plans and
// merges. Attempts of other behaviors, and those that were lost, given back, cancelled or timed out, are passed over.
func Again(
	ctx context.Context, export io.Reader, behaviors ...task.Behavior,
) (ran int, different []Difference, err error) {
	a := again{ctx: ctx, behaviors: map[string]task.Behavior{}, tasks: map[events.TaskID]*told{}}
	for _, b := range behaviors {
		a.behaviors[b.ID()] = b
	}
	v, err := ledger.ReadExport(export, func(ev ledger.Event) error {
		a.take(&ev)
		return ctx.Err()
	})
	if err == nil && v.Problem != "" {
		err = fmt.Errorf("%w: %s", events.ErrDamaged, v.Problem)
	}
	return a.ran, a.different, err
}

// again runs attempts as their ends are met.
type again struct {
	ctx       context.Context
	behaviors map[string]task.Behavior
	tasks     map[events.TaskID]*told
	ran       int
	different []Difference
}

// told holds what the events of a task have told so far.
type told struct {
	behavior task.Behavior
	params   []byte
	attempt  task.Attempt // that was started last
}

// take takes in the next event.
func (a *again) take(ev *ledger.Event) {
	if b, is := ev.Body.(*events.Created); is {
		delete(a.tasks, ev.Task)
		if runs := a.behaviors[b.Behavior]; runs != nil {
			first := task.Attempt{
				Task:     ev.Task,
				Behavior: b.Behavior,
				Policy:   b.Policy,
			}
			a.tasks[ev.Task] = &told{behavior: runs, params: textOf(b.Params), attempt: first}
		}
		return
	}
	of := a.tasks[ev.Task]
	if of == nil {
		return
	}
	switch b := ev.Body.(type) {
	case *events.Merged:
		of.params = textOf(b.Params)
	case *events.Started:
		of.attempt.Number, of.attempt.Token, of.attempt.Params = int(b.Attempt), ev.Position, of.params
	case *events.Lost:
		of.attempt.Lost++
	case *events.Snoozed:
		a.compare(of, "a snooze")
	case *events.Succeeded:
		a.compare(of, "the result "+canonical(textOf(b.Result)))
		of.attempt.Failures, of.attempt.Lost = 0, 0
	case *events.Failed:
		switch {
		case b.Error.Code == events.CodePanic: // its text has a stack
			a.compare(of, panicked)
		case !ofEngine(b.Error.Code):
			a.compare(of, failure(&b.Error, b.Run != 0))
		}
		if of.attempt.Failures++; b.Run != 0 {
			of.attempt.Failures, of.attempt.Lost = 0, 0
		}
	case *events.Deleted:
		delete(a.tasks, ev.Task)
	}
}

// panicked is the outcome of a function that panics.
const panicked = "a panic"

// textOf returns parameters or a result as JSON text.
func textOf(p events.Payload) []byte { return p.Readable() }

// ofEngine reports whether the engine itself gives a failure its code.
func ofEngine(code string) bool {
	switch code {
	case events.CodeCancelled, events.CodeTimeout, events.CodeLost, events.CodeDeadline:
		return true
	}
	return false
}

// compare runs the last attempt again.
func (a *again) compare(of *told, recorded string) {
	if of.attempt.Number == 0 { // it ended without one
		return
	}
	a.ran++
	now := run(a.ctx, of.behavior, of.attempt)
	if now == recorded {
		return
	}
	a.different = append(a.different, Difference{
		Task:     of.attempt.Task,
		Attempt:  of.attempt.Number,
		Recorded: recorded,
		Now:      now,
	})
}

// run makes an attempt, and returns its outcome in words.
func run(ctx context.Context, b task.Behavior, a task.Attempt) (now string) {
	defer func() {
		if recover() != nil {
			now = panicked
		}
	}()
	a.Log = slog.New(slog.DiscardHandler)
	a.Output = func(slog.Level, bool) io.Writer { return io.Discard }
	a.Progress = func(int64, int64, string) {}
	a.Lend = func() (takeBack func()) { return func() {} }
	switch o := b.Run(ctx, a); {
	case o.Release:
		return "given back"
	case o.Snooze > 0:
		return "a snooze"
	case o.Err != nil:
		return failure(o.Err, o.Wait <= 0 && o.Next.IsZero())
	default:
		return "the result " + canonical(o.Result)
	}
}

// failure returns a failure in words.
func failure(e *events.Error, final bool) string {
	how := "a failure that is tried again"
	if final {
		how = "a final failure"
	}
	return fmt.Sprintf("%s, %s: %s", how, e.Code, e.Message)
}

// canonical returns JSON text without blanks, as one order of members.
func canonical(text []byte) string {
	if len(text) == 0 {
		return "null"
	}
	var v any
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if in.Decode(&v) != nil {
		return string(text)
	}
	same, err := json.Marshal(v)
	if err != nil {
		return string(text)
	}
	return string(same)
}
