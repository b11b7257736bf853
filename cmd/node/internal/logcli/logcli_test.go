package logcli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/logcli"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/store"
	"taskledger/tasklog"
)

// line is a command line with a task of its own, which writes while the command sleeps.
type line struct {
	t      *testing.T
	asJSON bool

	told    []tasklog.TaskLine
	page    int // lines of a page
	ended   bool
	fails   error
	asked   []tasklog.Selection
	said    bytes.Buffer // beside what it prints
	waits   bool
	slept   time.Duration
	happens func(slept time.Duration) // before a sleep
}

// Log implements operations.Logs. A cursor counts the lines that were told.
func (l *line) Log(_ context.Context, id events.TaskID, s tasklog.Selection) (told tasklog.Told, err error) {
	if id != "a/b" {
		l.t.Errorf("asked for %s", id)
	}
	l.asked = append(l.asked, s)
	from := 0
	if s.Cursor != "" {
		if _, err := fmt.Sscan(s.Cursor, &from); err != nil {
			l.t.Error(err)
		}
	}
	told.Lines = l.told[from:min(len(l.told), from+l.page)]
	told.Cursor = fmt.Sprint(from + len(told.Lines))
	told.More, told.Ended = from+len(told.Lines) < len(l.told), l.ended
	return told, l.fails
}

func (l *line) write(texts ...string) {
	for _, text := range texts {
		n := len(l.told) + 1
		l.told = append(l.told, tasklog.TaskLine{
			Attempt: 1,
			Number:  uint64(n),
			Line: tasklog.Line{
				At:    1_700_000_000_000 + events.Millis(n),
				Level: tasklog.Level(n % 2),
				Text:  text,
			},
		})
	}
}

func newLine(t *testing.T, texts ...string) *line {
	l := &line{t: t, page: 2, happens: func(time.Duration) {}}
	l.write(texts...)
	return l
}

// do runs the command, and returns what it has printed.
func (l *line) do(args ...string) (out string, err error) {
	var printed bytes.Buffer
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	terminal := &logcli.Terminal{
		Print: func(columns ...string) *output.Printer { return output.New(&printed, l.asJSON, columns...) },
		Err:   &l.said,
		Sleep: func(_ context.Context, d time.Duration) {
			l.happens(l.slept)
			if l.slept += d; l.slept > time.Minute { // somebody types ^C
				cancel()
			}
		},
		Ask: func(
			c *cobra.Command, waits func() bool, run func(context.Context, operations.Logs, []string) error,
		) *cobra.Command {
			c.RunE = func(c *cobra.Command, args []string) error {
				l.waits = waits()
				return run(c.Context(), l, args)
			}
			return c
		},
	}
	c := terminal.Command()
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.ExecuteContext(ctx)
	return printed.String(), err
}

// messages returns the last words of the lines of a table without its heading.
func messages(table string) string {
	var all []string
	for text := range strings.Lines(table) {
		words := strings.Fields(text)
		all = append(all, words[len(words)-1])
	}
	return strings.Join(all[1:], " ")
}

func TestLogs_PrintsAllPagesAsATableOrJSON(t *testing.T) {
	l := newLine(t, "one", "two", "\x1b[31mthree")
	out, err := l.do("a/b")
	const want = "TIME                      LEVEL  ATTEMPT  MESSAGE\n" +
		"2023-11-14T22:13:20.001Z  error  1        one\n" +
		"2023-11-14T22:13:20.002Z  info   1        two\n" +
		"2023-11-14T22:13:20.003Z  error  1         [31mthree\n"
	if out != want || err != nil || l.waits || l.slept > 0 {
		t.Errorf("%v, %q\nwant %q", err, out, want)
	}
	l.asJSON = true
	out, err = l.do("a/b")
	const first = `{"time":"2023-11-14T22:13:20.001Z","level":"error","message":"one","attempt":1,"number":1}` + "\n"
	if err != nil || !strings.HasPrefix(out, first) || strings.Count(out, "\n") != 3 {
		t.Errorf("%v, %q", err, out)
	}
}

// Where there is no line it says why that may be: a table of nothing looks like a task that wrote nothing.
func TestLogs_WithoutALineSaysThatNoneMayBeKept(t *testing.T) {
	for _, follow := range []bool{false, true} {
		l := newLine(t)
		l.ended = true
		out, err := l.do("a/b", fmt.Sprint("--follow=", follow))
		if err != nil || strings.Count(out, "\n") > 1 || !strings.Contains(l.said.String(), "--logs none") {
			t.Errorf("follow %t: %v, %q, said %q", follow, err, out, &l.said)
		}
	}
	some, programs := newLine(t, "one"), newLine(t)
	programs.asJSON = true
	for _, l := range []*line{some, programs} {
		if _, err := l.do("a/b"); err != nil || l.said.Len() > 0 {
			t.Errorf("%v, said %q", err, &l.said)
		}
	}
}

func TestLogs_AsksForWhatItsFlagsSay(t *testing.T) {
	l := newLine(t)
	_, err := l.do("a/b", "--attempt", "3", "--level", "error", "--since", "2026-11-21T12:00:00Z",
		"--until", "2026-11-21T12:00:01.5Z")
	want := tasklog.Selection{Attempt: 3, Level: tasklog.Error, Since: 1795262400000, Until: 1795262401500}
	if err != nil || len(l.asked) != 1 || l.asked[0] != want {
		t.Errorf("%v, asked for %+v, want %+v", err, l.asked, want)
	}
}

func TestLogs_RefusesWhatItDoesNotUnderstandAndNamesIt(t *testing.T) {
	l := newLine(t)
	for flag, value := range map[string]string{
		"--attempt": fmt.Sprint(math.MaxUint32 + 1),
		"--level":   "warn",
		"--since":   "noon",
		"--until":   "1970-01-01T00:00:00Z",
	} {
		_, err := l.do("a/b", flag, value)
		name := strings.TrimPrefix(flag, "--")
		if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "--"+name) || len(l.asked) > 0 {
			t.Errorf("%s %s: %v", flag, value, err)
		}
	}
}

func TestLogs_FollowsUntilTheTaskHasEndedAndNothingComes(t *testing.T) {
	l := newLine(t, "one")
	l.happens = func(slept time.Duration) {
		switch slept {
		case 3 * time.Second:
			l.write("two", "three", "four")
		case 10 * time.Second:
			l.ended = true
		case 11 * time.Second: // the end is told before the last lines are stored
			l.write("five")
		}
	}
	out, err := l.do("a/b", "--follow")
	if got := messages(out); got != "one two three four five" || err != nil || !l.waits {
		t.Errorf("%s, %v", got, err)
	}
	if l.slept < 13*time.Second || l.slept > 14*time.Second {
		t.Errorf("it ends after %s, want 2 s after the last line", l.slept)
	}
}

func TestLogs_FollowsOnWhereTheNodeStartsAgain(t *testing.T) {
	l := newLine(t, "one")
	down := fmt.Errorf("read the log: %w", store.ErrUnavailable)
	l.happens = func(slept time.Duration) {
		switch {
		case slept < time.Second:
			l.fails = down
			l.page = 0
		case slept > 20*time.Second && !l.ended:
			l.fails, l.page, l.ended = nil, 10, true
			l.write("two")
		}
	}
	out, err := l.do("a/b", "--follow")
	if err != nil || messages(out) != "one two" {
		t.Errorf("%v, %q", err, out)
	}
	l = newLine(t, "one")
	l.happens = func(time.Duration) { l.fails, l.page = down, 0 }
	if _, err := l.do("a/b", "--follow"); !errors.Is(err, store.ErrUnavailable) || l.slept < 30*time.Second {
		t.Errorf("after %s: %v", l.slept, err)
	}
	for _, follow := range []bool{false, true} { // it may never answer
		l = newLine(t)
		l.fails = down
		if _, err := l.do("a/b", fmt.Sprint("--follow=", follow)); !errors.Is(err, store.ErrUnavailable) || l.slept != 0 {
			t.Errorf("follow %t, after %s: %v", follow, l.slept, err)
		}
	}
}

func TestLogs_FollowsUntilItIsInterrupted(t *testing.T) {
	l := newLine(t, "one")
	out, err := l.do("a/b", "--follow")
	if !errors.Is(err, context.Canceled) || messages(out) != "one" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestLogs_EndsWithTheErrorOfTheCluster(t *testing.T) {
	l := newLine(t)
	for fails, want := range map[error]int{tasklog.ErrNone: exitcode.Unavailable, tasklog.ErrGone: exitcode.NotKept} {
		l.fails = fails
		if out, err := l.do("a/b", "--follow"); exitcode.Of(err) != want || out != "" {
			t.Errorf("%v: exit code %d, want %d; printed %q", err, exitcode.Of(err), want, out)
		}
	}
}
