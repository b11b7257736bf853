package enginetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"taskledger/api/view"
	"taskledger/events"
	"taskledger/ledger"
)

// update names the variable of the environment that has golden files written. A flag would meet those of the test.
const update = "ENGINETEST_UPDATE"

// updates reports whether golden files are to be written.
func updates() bool { return os.Getenv(update) != "" }

// Golden compares the history of a task with a file, such as testdata/resize.golden: one event a line, with all that
// the behavior and its callers have decided. Times, sessions and places in the journal are left out, as each run has
// others, and so is the time in what is told of a deadline that has passed. Of a panic the first line is compared, not
// the stack. With the variable ENGINETEST_UPDATE=1 it writes the
// file instead.
func (n *Node) Golden(t testing.TB, id events.TaskID, file string) {
	t.Helper()
	got, err := n.history(t, id)
	if err == nil && updates() {
		if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
			err = os.WriteFile(file, got, 0o644)
		}
		if err != nil {
			t.Fatalf("write the history of %s: %v", id, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("history of %s: %v", id, err)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("history of %s: %v; write the file with: %s=1 go test -run '^%s$'", id, err, update, t.Name())
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the history of %s differs from %s, from line %d on; got:\n%s\nwant:\n%s",
			id, file, differs(got, want), got, want)
	}
}

// differs returns the number of the first line that is not the same.
func differs(got, want []byte) int {
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(string(got), "\n") {
		if i >= len(lines) || line != lines[i] {
			return i + 1
		}
	}
	return len(lines)
}

// line is an event in a golden file.
type line struct {
	Seq       uint64          `json:"seq"`
	Kind      events.Kind     `json:"kind"`
	Behavior  string          `json:"behavior,omitempty"`
	Principal string          `json:"principal,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// history returns the golden text of a task.
func (n *Node) history(t testing.TB, id events.TaskID) ([]byte, error) {
	var text bytes.Buffer
	for ev, err := range n.Ledger().History(t.Context(), id) {
		if err != nil {
			return nil, err
		}
		shown := view.OfEvent(steady(ev))
		data, err := stable(shown.Data)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", ev.Seq, err)
		}
		one, err := json.Marshal(line{
			Seq:       shown.Seq,
			Kind:      shown.Kind,
			Behavior:  shown.Behavior,
			Principal: shown.Principal,
			Data:      data,
		})
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", ev.Seq, err)
		}
		text.Write(one)
		text.WriteByte('\n')
	}
	return text.Bytes(), nil
}

// steady returns an event whose text is the same in each run: without the stack of a panic, which has other addresses,
// and without the time of a deadline.
func steady(ev ledger.Event) ledger.Event {
	switch b := ev.Body.(type) {
	case *events.Failed:
		same := *b
		switch b.Error.Code {
		case events.CodePanic:
			same.Error.Message, _, _ = strings.Cut(b.Error.Message, "\n")
		case events.CodeDeadline:
			same.Error.Message = untimed(b.Error.Message)
		}
		ev.Body = &same
	case *events.Rescheduled: // a deadline takes a further run away
		same := *b
		same.Reason = untimed(b.Reason)
		ev.Body = &same
	}
	return ev
}

// passed is what the engine says of a deadline.
var passed = regexp.MustCompile(`^the deadline, [^,]*, has passed$`)

func untimed(text string) string {
	return passed.ReplaceAllString(text, "the deadline, (time), has passed")
}

// Each run of a test has other times in the data of events, of which is told that there is one, and other traits of its
// node, of which nothing is told.
var (
	times    = []string{"not_before", "next", "until", "available", "from", "to", "oldest", "deadline"}
	ofTheRun = []string{"offer", "lease_ms"}
)

// stable returns the data of an event without what each run has anew.
func stable(data any) (json.RawMessage, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if data == nil || json.Unmarshal(text, &fields) != nil {
		return nil, nil
	}
	for _, name := range ofTheRun {
		delete(fields, name)
	}
	for _, name := range times {
		if at := string(fields[name]); at == `""` {
			delete(fields, name)
		} else if at != "" {
			fields[name] = json.RawMessage(`"(time)"`)
		}
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return json.Marshal(fields)
}
