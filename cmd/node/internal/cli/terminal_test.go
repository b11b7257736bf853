package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/events"
	"taskledger/task"
)

// steering is text of a task or a file that steers a terminal.
const steering = "torn\x1b[2J\u009b31m\x07"

// wantClean reports control characters other than the line ends of the program.
func wantClean(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), unicode.IsControl) {
			t.Errorf("printed %q", text)
		}
	}
}

// exportOf writes an export of a shard with one entry.
func exportOf(t *testing.T, principal string, body events.Body) (file string) {
	t.Helper()
	var b events.Builder
	b.Reset(events.Entry{Shard: 1, Number: 1, Owner: "a", Time: 1})
	b.Add(events.Event{Seq: 1, Origin: b.AddOrigin(events.Origin{Sender: "c", Number: 1, Caller: events.Caller{Principal: principal}}), Body: body})
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"format":"taskledger export","version":3,"cluster":"c","shard":1,"from":1,"prev":"%s"}`+"\n"+`{"entry":"%s"}`+"\n"+`{"end":1,"hash":"%s"}`+"\n",
		events.Hash{}, base64.StdEncoding.EncodeToString(data), b.Entry.Hash)
	file = filepath.Join(t.TempDir(), "export")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestVerify_OfAFileDoesNotLetItSteerTheTerminal(t *testing.T) {
	for _, form := range []string{"table", "json"} {
		var out, problems bytes.Buffer
		file := exportOf(t, "ada"+steering, &events.Recovered{Reason: steering})
		code := Main(t.Context(), Program{Args: []string{"verify", file, "--output", form}, Out: &out, Err: &problems})
		if code != exitcode.OK || !strings.Contains(problems.String(), "torn") {
			t.Errorf("exit code %d, said %q", code, problems.String())
		}
		wantClean(t, out.String(), problems.String())
	}
	var out, problems bytes.Buffer
	file := exportOf(t, "ada", &events.Unpaused{Behavior: steering})
	if code := Main(t.Context(), Program{Args: []string{"verify", file}, Out: &out, Err: &problems}); code != exitcode.Failed {
		t.Errorf("exit code %d, said %q", code, problems.String())
	}
	wantClean(t, out.String(), problems.String())
}

// ended is a task with a result, or an error.
type ended struct {
	operations.Handle
	result []byte
	err    error
}

func (e ended) ID() events.TaskID { return "x" }

func (e ended) Wait(context.Context) ([]byte, error) { return e.result, e.err }

func (ended) Close() {}

func TestWait_DoesNotLetAnOutcomeSteerTheTerminal(t *testing.T) {
	for _, form := range []string{"table", "json"} {
		var out bytes.Buffer
		a := &app{Program: Program{Out: &out, Err: &out}, output: form}
		if err := a.await(t.Context(), ended{result: []byte("\"\u009b31m\"")}); err != nil {
			t.Fatal(err)
		}
		failed := &task.Error{Task: "x", Code: "torn", Message: steering}
		err := a.await(t.Context(), ended{err: failed})
		if !errors.Is(err, failed) {
			t.Errorf("the outcome is %v", err)
		}
		wantClean(t, out.String(), oneLine(err))
	}
}
