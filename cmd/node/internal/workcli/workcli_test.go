package workcli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/workcli"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work/progress"
)

const begin events.Millis = 1_800_000_000_000

// line is a command line with the work of one task.
type line struct {
	t      *testing.T
	asJSON bool
	said   bytes.Buffer // beside what it prints

	work   progress.Work
	facts  progress.Facts
	failed []progress.Failures
	fails  error
	asked  []string
	open   []int // buckets, by look; the last one stays
}

func (l *line) ask(id events.TaskID, format string, args ...any) error {
	l.asked = append(l.asked, fmt.Sprintf(format, args...))
	if id != "a/b" {
		return fmt.Errorf("no work is planned: task %s: %w", id, task.ErrNotFound)
	}
	return l.fails
}

func (l *line) Work(_ context.Context, id events.TaskID) (progress.Work, error) {
	w := l.work
	w.Task = id
	w.Derive(l.facts)
	if len(l.open) > 0 {
		w.Open = make([]progress.Bucket, l.open[0])
		l.open = l.open[min(1, len(l.open)-1):]
	}
	return w, l.ask(id, "show")
}

func (l *line) WorkLinear(ctx context.Context, id events.TaskID) (progress.Work, error) {
	return l.Work(ctx, id)
}

// WorkFailures has a cursor that counts the buckets that were told, and looks at few events a page.
func (l *line) WorkFailures(
	_ context.Context, id events.TaskID, cursor string, limit int,
) (page progress.FailurePage, err error) {
	from := 0
	if cursor != "" {
		if _, err := fmt.Sscan(cursor, &from); err != nil {
			l.t.Error(err)
		}
	}
	page = progress.FailurePage{Task: id, Run: 2, FailedBuckets: uint64(len(l.failed))}
	for _, f := range l.failed {
		page.FailedItems += f.Failed
	}
	to := min(from+min(limit, 2), len(l.failed))
	page.Buckets = l.failed[from:to]
	if to < len(l.failed) {
		page.Cursor = fmt.Sprint(to)
	}
	return page, l.ask(id, "errors %q %d", cursor, limit)
}

func (l *line) ResetWork(_ context.Context, id events.TaskID, how operations.WorkReset) error {
	if how.Token != nil {
		return l.ask(id, "token %q %q", *how.Token, how.Reason)
	}
	return l.ask(id, "reset %t", how.Thresholds)
}

func (l *line) RerunWork(_ context.Context, id events.TaskID) error { return l.ask(id, "rerun") }

// do runs the command, and returns what it has printed.
func (l *line) do(args ...string) (string, error) {
	l.t.Helper()
	var printed bytes.Buffer
	terminal := &workcli.Terminal{
		Err:   &l.said,
		Print: func(columns ...string) *output.Printer { return output.New(&printed, l.asJSON, columns...) },
		Ask: func(c *cobra.Command, run func(context.Context, operations.Works, []string) error) *cobra.Command {
			c.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), l, args) }
			return c
		},
	}
	c := terminal.Command()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	c.SetOut(&printed)
	l.said.Reset()
	l.asked = nil
	err := c.ExecuteContext(l.t.Context())
	return printed.String(), err
}

// must is do of a command that succeeds, and prints every part in this order.
func (l *line) must(args string, parts ...string) string {
	l.t.Helper()
	text, err := l.do(strings.Fields(args)...)
	if err != nil {
		l.t.Errorf("%s: %v", args, err)
	}
	rest := text
	for _, part := range parts {
		_, after, has := strings.Cut(rest, part)
		if !has {
			l.t.Fatalf("%s: no %q in %s", args, part, text)
		}
		rest = after
	}
	return text
}

func newLine(t *testing.T) *line {
	expected := uint64(9000)
	return &line{
		t: t,
		work: progress.Work{
			Behavior:  "reindex",
			Status:    task.Running,
			At:        begin + 900_000,
			Run:       2,
			PlannedAt: begin,
			Errors:    progress.ErrorTexts{Limit: 64 << 20},
			Workers: progress.Workers{Active: 4, Running: 3, Nodes: []progress.Node{
				{Node: "n1", Workers: 2},
				{Node: "n2", Workers: 1},
			}},
			Open: []progress.Bucket{{Number: 47, Worker: 2, Task: "a/b.w2", Node: "n1", Since: begin + 60_000}},
			Partitions: []progress.Partition{
				{
					ID: "objects", Mode: "simulate", StartedAt: begin, EndedAt: begin + 5000, WallClockMs: 5000,
					Buckets: progress.Buckets{Total: 1, Done: 1},
				},
				{
					ID: "shadows", Mode: "full", StartedAt: begin + 5000, LastBucketAt: begin + 100_000,
					WallClockMs: 46_000,
					Buckets:     progress.Buckets{Total: 200, Done: 46, Open: 1},
					Items:       progress.Items{Done: 4000, Failed: 57, Skipped: 543, Expected: &expected},
					Thresholds:  []progress.Threshold{{Counter: "deletes", Count: 3, Limit: 10}},
				},
			},
		},
		facts: progress.Facts{Planned: true, Current: 2, BusyFrom: begin + 5000},
	}
}

func TestShow_TellsTheTreeWithItsStates(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	text := l.must("show a/b",
		"work", "a/b", "state", "in-progress", "progress", "23 % in 2/2",
		"run", "2, planned at 2027-01-15T08:00:00.000Z",
		"4000 done, 57 failed, 543 skipped", "4, of which 3 run: 2 on n1, 1 on n2",
		"PARTITION", "objects", "simulate", "complete", "complete",
		"shadows", "full", "in-progress", "23 % (46 of 200 buckets)", "4000", "57", "543", "9000", "46s", "100", "2m34s",
		"2027-01-15T08:01:40.000Z",
		"COUNTER", "deletes", "shadows", "full", "3", "10", "false")
	if strings.Contains(text, "a/b.w2") {
		t.Errorf("it tells buckets that nobody asked for: %s", text)
	}
	l.must("show a/b --buckets", "BUCKET", "47", "a/b.w2", "n1", "2027-01-15T08:01:00.000Z")
	open := l.work.Open
	l.work.Open = nil
	if text := l.must("show a/b --buckets"); strings.Contains(text, "WORKER") {
		t.Errorf("it prints the heading of a table without a row: %s", text)
	}
	l.work.Open = open
	l.asJSON = true
	l.must("show a/b", `{"task":"a/b"`, `"progress":"23 % in 2/2"`, `"open_buckets":[{"bucket":47`)
}

func TestShow_SaysWhatIsUnusual(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.work.Waits, l.work.FailedOnly = true, true
	l.work.Failing = &progress.Failing{Bucket: 12, Attempts: 2}
	l.work.Error = &events.Error{Code: "items", Message: "partition shadows"}
	l.work.Errors.Bytes = l.work.Errors.Limit
	l.must("show a/b", "of the buckets that had failed items", "waits for its workers",
		"attempts on bucket 12 have failed 2 times", "items: partition shadows", "counted alone")
	l.facts, l.work.PlannedAt = progress.Facts{}, 0
	l.must("show a/b", "not-started", "reset: the next attempt plans another one")
}

func TestErrors_ShowBucketsUpToTheLimitAndHowToGoOn(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	for n := range uint64(5) {
		l.failed = append(l.failed, progress.Failures{
			Partition: "shadows", Bucket: 9 - n, EndedAt: begin, Failed: 3,
			Errors: []progress.ItemError{{Item: fmt.Sprintf("row-%d", n), Code: "boom", Message: "it\nbursts"}},
		})
	}
	text := l.must("errors a/b --limit 3",
		"shadows    9", "row-0", "boom", "it bursts", "shadows    9", "2 more", "row-1", "row-2")
	if strings.Contains(text, "row-3") || !strings.Contains(l.said.String(), "--cursor 3") ||
		!strings.Contains(l.said.String(), "run 2: 15 items have failed, in 5 buckets") {
		t.Errorf("%s%s", text, l.said.String())
	}
	l.must("errors a/b --cursor 3", "row-3", "row-4")
	if strings.Contains(l.said.String(), "--cursor") {
		t.Errorf("at the end: %s", l.said.String())
	}
	l.must("errors a/b --limit 0", "row-0", "row-4")
	l.asJSON = true
	text = l.must("errors a/b")
	if strings.Count(text, "\n") != 5 || !strings.HasPrefix(text, `{"partition":"shadows","bucket":9`) {
		t.Errorf("%s", text)
	}
}

func TestErrors_WithoutAnyPrintNoHeading(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	if text := l.must("errors a/b"); text != "" || !strings.Contains(l.said.String(), "0 items have failed") {
		t.Errorf("%q, %s", text, l.said.String())
	}
}

func TestShow_ACounterWithoutALimitShowsNone(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.work.Partitions = []progress.Partition{{ID: "p", Thresholds: []progress.Threshold{
		{Counter: "counted", Count: 3, Limit: math.MaxInt64},
		{Counter: "limited", Count: 3, Limit: 4},
	}}}
	text := l.must("show a/b", "counted", "-", "limited", "4")
	if strings.Contains(text, "9223372036854775807") {
		t.Error(text)
	}
}

func TestErrors_ThatCannotBeReadOnComeAfterThoseThatCould(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.fails = errors.New("trimmed")
	if _, err := l.do("errors", "a/b"); err == nil {
		t.Error("no error")
	}
	if _, err := l.do("errors", "a/b", "--limit", "-1"); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("a negative limit: %v", err)
	}
}

func TestReset_ForgetsTheRunOrTheCounters(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	for args, want := range map[string]string{
		"reset a/b":              "reset false",
		"reset a/b --thresholds": "reset true",
		"rerun a/b --failed":     "rerun",
	} {
		if l.must(args); l.asked[len(l.asked)-1] != want || l.said.Len() > 0 {
			t.Errorf("%s asks %q", args, l.asked)
		}
	}
	if _, err := l.do("reset", "a/b", "--token", "", "--reason", "all again"); err != nil ||
		l.asked[len(l.asked)-1] != `token "" "all again"` {
		t.Errorf("a token of the beginning: %v, asks %q", err, l.asked)
	}
	if _, err := l.do("rerun", "a/b"); exitcode.Of(err) != exitcode.Usage || len(l.asked) > 0 {
		t.Errorf("rerun without --failed: %v, %q", err, l.asked)
	}
}

func TestRerun_AndShowSayWhereFailedBucketsAreASpan(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	if text := l.must("show a/b"); strings.Contains(text, "span") {
		t.Errorf("without a span: %s", text)
	}
	b := &l.work.Partitions[1].Buckets
	b.Failed, b.FailedSpan = 20_000, true
	l.must("show a/b", "shadows", "57 in a span", "543")
	l.must("rerun a/b --failed")
	const want = "partition shadows: 20000 buckets had failed items, in too many ranges to remember; " +
		"the run has all buckets from the first of them to the last\n"
	if l.said.String() != want {
		t.Errorf("%q, want %q", l.said.String(), want)
	}
	l.fails = &task.StateError{Task: "a/b", Problem: "3 buckets are open"}
	if _, err := l.do("rerun", "a/b", "--failed"); err == nil || l.said.Len() > 0 {
		t.Errorf("a rerun that is refused: %v, %q", err, &l.said)
	}
}

func TestWork_ExitCodesAreThoseOfTasks(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	for _, args := range []string{"show nobody", "errors nobody", "reset nobody", "rerun nobody --failed"} {
		if _, err := l.do(strings.Fields(args)...); exitcode.Of(err) != exitcode.NotFound {
			t.Errorf("%s: %v", args, err)
		}
	}
	l.fails = &task.StateError{Task: "a/b", Problem: "3 buckets are open"}
	for _, args := range []string{"reset a/b", "rerun a/b --failed"} {
		if _, err := l.do(strings.Fields(args)...); exitcode.Of(err) != exitcode.Refused {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func absent(err error) bool { return errors.Is(err, task.ErrNotFound) }

func TestAwaitBuckets_EndsWithTheLastOpenOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id    events.TaskID
		open  []int
		fails error
		want  int
		slept time.Duration
	}{
		"none is open":   {"a/b", []int{0}, nil, 0, 0},
		"soon":           {"a/b", []int{3, 1, 0}, nil, 0, 150 * time.Millisecond},
		"without a work": {"c", []int{3}, nil, 0, 0},
	} {
		l := newLine(t)
		l.open, l.fails = c.open, c.fails
		slept := time.Duration(0)
		got := workcli.AwaitBuckets(t.Context(), l, c.id, absent, func(_ context.Context, d time.Duration) { slept += d })
		if got != c.want || slept != c.slept {
			t.Errorf("%s: %d after %v, want %d after %v", name, got, slept, c.want, c.slept)
		}
	}
}

func TestAwaitBuckets_WaitsTenSecondsAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.open = []int{3, 2}
		begun := time.Now()
		got := workcli.AwaitBuckets(t.Context(), ends{l}, "a/b", absent, func(ctx context.Context, d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		})
		if took := time.Since(begun); got != 2 || took != 10*time.Second {
			t.Errorf("%d after %v, want 2 after 10 s", got, took)
		}
	})
}

// ends answers nothing once the context has ended. Its Work is behind: it has no open bucket yet.
type ends struct{ operations.Works }

func (e ends) Work(context.Context, events.TaskID) (w progress.Work, err error) { return w, nil }

func (e ends) WorkLinear(ctx context.Context, id events.TaskID) (progress.Work, error) {
	if ctx.Err() != nil {
		return progress.Work{}, context.Cause(ctx)
	}
	return e.Works.WorkLinear(ctx, id)
}
