package storecli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/storecli"
	"taskledger/internal/testkit"
	"taskledger/item"
	"taskledger/task"
	"taskledger/taskstore/taskstoretest/model"
)

// asked is a store that remembers what it was asked.
type asked struct {
	operations.Stores
	linear, notLinear int
	updates           []item.Update
	claims            []item.Claim
}

func (a *asked) note(linear bool) {
	if linear {
		a.linear++
	} else {
		a.notLinear++
	}
}

func (a *asked) Items(ctx context.Context, store string, ids []int64, linear bool) ([]*item.Item, error) {
	a.note(linear)
	return a.Stores.Items(ctx, store, ids, linear)
}

func (a *asked) Groups(ctx context.Context, store string, linear bool) ([]item.Group, error) {
	a.note(linear)
	return a.Stores.Groups(ctx, store, linear)
}

func (a *asked) Group(ctx context.Context, store string, p item.Page) ([]item.Item, bool, error) {
	a.note(p.Linear)
	return a.Stores.Group(ctx, store, p)
}

func (a *asked) Update(ctx context.Context, store string, u *item.Update) ([]item.Item, error) {
	a.updates = append(a.updates, *u)
	return a.Stores.Update(ctx, store, u)
}

func (a *asked) Claim(ctx context.Context, store string, c *item.Claim) (*item.Item, error) {
	a.claims = append(a.claims, *c)
	return a.Stores.Claim(ctx, store, c)
}

// line is a command line with a store of its own.
type line struct {
	t *testing.T
	asked
	in string
}

func newLine(t *testing.T) *line {
	return &line{t: t, asked: asked{Stores: model.New(testkit.Rand(t))}}
}

// run runs a command, and returns what it has printed.
func (l *line) run(args ...string) (out, said string, err error) {
	var printed, other bytes.Buffer
	terminal := &storecli.Terminal{In: strings.NewReader(l.in), Err: &other, Principal: func() string { return "somebody" },
		Print: func(columns ...string) *output.Printer { return output.New(&printed, false, columns...) },
		Ask: func(c *cobra.Command, _ func() bool, run func(context.Context, operations.Stores, []string) error) *cobra.Command {
			c.RunE = func(_ *cobra.Command, args []string) error { return run(l.t.Context(), &l.asked, args) }
			return c
		}}
	c := terminal.Command()
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.Execute()
	return printed.String(), other.String(), err
}

func (l *line) must(args ...string) (out, said string) {
	l.t.Helper()
	out, said, err := l.run(args...)
	if err != nil {
		l.t.Fatalf("%q: %v", args, err)
	}
	return out, said
}

func TestReads_AreLinearIfTheyAreAskedToBe(t *testing.T) {
	l := newLine(t)
	l.must("update", `{"adds":[{"group":"g","data":"x"},{"group":"h"}]}`)
	for _, args := range [][]string{{"groups"}, {"get", "1"}, {"list", "g"}, {"stats"}} {
		l.linear, l.notLinear = 0, 0
		l.must(append(args, "--linear")...)
		if l.linear == 0 || l.notLinear > 0 {
			t.Errorf("%q --linear: %d linear questions and %d others", args, l.linear, l.notLinear)
		}
		l.linear, l.notLinear = 0, 0
		if l.must(args...); l.linear > 0 {
			t.Errorf("%q asks linear questions", args)
		}
	}
}

func TestList_TellsThatThereAreMoreAndGoesOn(t *testing.T) {
	l := newLine(t)
	l.must("update", `{"adds":[`+strings.Repeat(`{"group":"g"},`, 2)+`{"group":"g","timespec":-60000}]}`)
	if out, said := l.must("list", "g", "--limit", "1"); !strings.Contains(out, "\n1 ") || said != "there are more: go on with --cursor 1\n" {
		t.Errorf("%q, %q", out, said)
	}
	if out, said := l.must("list", "g", "--limit", "1", "--cursor", "1"); !strings.Contains(out, "\n2 ") || said != "" {
		t.Errorf("%q, %q", out, said)
	}
	if out, said := l.must("list", "g", "--owned", "--cursor", "2"); !strings.Contains(out, "\n3 ") || said != "" {
		t.Errorf("%q, %q", out, said)
	}
}

func TestStats_TellWhatTheOwnerHasCounted(t *testing.T) {
	l := newLine(t)
	l.must("update", `{"adds":[{"group":"g","data":"xyz"},{"group":"g","data":"x"},{"group":"g","timespec":-60000},{"group":"h","timespec":-60000}]}`)
	l.must("claim", "g")
	out, _ := l.must("stats")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 {
		t.Fatalf("%q", out)
	}
	if got := strings.Fields(lines[1]); strings.Join(got[:6], " ") != "g 3 1 1 1 4" || len(got) != 7 {
		t.Errorf("%q, want 3 tasks of 4 bytes, each in another column, and a time", lines[1])
	}
	if got := strings.Join(strings.Fields(lines[2]), " "); got != "h 1 0 1 0 0 -" {
		t.Errorf("%q, want one that waits", got)
	}
}

// What a reader could not tell apart or copy is in quotes, in every table.
func TestNames_ThatAreNotPlainAreQuoted(t *testing.T) {
	l := newLine(t)
	l.must("update", `{"adds":[{"group":"\n"},{"group":" "},{"group":"a b"},{"group":"\u001b[2J"},{"group":"\"x\""},{"group":"ü"}]}`)
	want := "GROUP\n\"\\n\"\n\"\\x1b[2J\"\n\" \"\n\"\\\"x\\\"\"\na b\nü\n"
	if out, _ := l.must("groups"); out != want {
		t.Errorf("%q, want %q", out, want)
	}
	for _, args := range [][]string{{"stats"}, {"list", "\n"}, {"get", "1"}, {"claim", "\n"}} {
		if out, _ := l.must(args...); !strings.Contains(out, `"\n"`) {
			t.Errorf("%q: %q", args, out)
		}
	}
}

func TestUpdate_SendsWhatItIsToldFromWhereverItComes(t *testing.T) {
	l := newLine(t)
	file := filepath.Join(t.TempDir(), "request")
	if err := os.WriteFile(file, []byte(`{"adds":[{"group":"g","data":"of a file"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	l.must("update", "--file", file, "--key", "k", "--client-id", "7", "--age", "3s")
	l.in = `{"clientid":9,"updates":[{"id":1,"keep":true}]}`
	if out, _ := l.must("update", "--file", "-", "--client-id", "7"); !strings.Contains(out, "(kept)") {
		t.Errorf("%q", out)
	}
	if u := l.updates[0]; u.Key != "k" || u.Age != 3*time.Second || u.Client != 7 || string(u.Adds[0].Data) != "of a file" {
		t.Errorf("%+v", u)
	}
	if u := l.updates[1]; u.Client != 9 {
		t.Errorf("client %d, want the one of the request", u.Client)
	}
	l.must("claim", "g", "--depends", "2", "--key", "k2", "--client-id", "9", "--wait-for", "1ms", "--age", "1m")
	if c := l.claims[0]; len(c.Depends) != 1 || c.Depends[0] != 2 || c.Key != "k2" || c.Age != time.Minute || c.Client != 9 || c.Wait.Milliseconds() != 1 {
		t.Errorf("%+v", c)
	}
}

func TestUpdate_RefusesWhatItDoesNotUnderstandAndNamesIt(t *testing.T) {
	l := newLine(t)
	for request, want := range map[string]string{
		``:                            "empty",
		`x`:                           "body",
		`{"adds":[{"group":"g"}]} {}`: "body",
		`{"adds":[{"group":"g"}],"adds":[{"group":"h"}]}`:              "adds: it is there more than once",
		`{"Adds":[{"group":"g"}]}`:                                     "the field is named adds",
		`{"adds":[{"group":"g"},{"group":"g","timespec":"tomorrow"}]}`: "adds[1].timespec: want a whole number",
		`{"adds":[{"group":"g","colour":1}]}`:                          "adds[0].colour",
		`[]`:                                                           "want an object",
	} {
		_, _, err := l.run("update", request)
		if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %q", request, err, want)
		}
	}
	if len(l.updates) > 0 {
		t.Errorf("%d updates were sent", len(l.updates))
	}
}

func TestKey_OfAnotherRequestIsRefused(t *testing.T) {
	l := newLine(t)
	l.must("update", `{"adds":[{"group":"g"}]}`, "--key", "k")
	_, _, err := l.run("update", `{"adds":[{"group":"h"}]}`, "--key", "k")
	if !errors.Is(err, task.ErrOtherRequest) || exitcode.Of(err) != exitcode.Refused {
		t.Errorf("%v, exit %d", err, exitcode.Of(err))
	}
}
