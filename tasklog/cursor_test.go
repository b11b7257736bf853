package tasklog_test

import (
	"encoding/base64"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/tasklog"
)

const ofTask = events.TaskID("a/b")

var (
	ofLife = events.RefOf(7, 1)
	placed = at(3, 70_000)
	// rich is a cursor of each member.
	rich = tasklog.Cursor{Place: placed.Place, Behind: []tasklog.Place{{Attempt: 1, Line: 7}, {Attempt: 2}}, Told: true}
)

func at(attempt uint32, line uint64) tasklog.Cursor {
	return tasklog.Cursor{Place: tasklog.Place{Attempt: attempt, Line: line}}
}

func TestParseCursor_ReadsWhatTextReturns(t *testing.T) {
	largest := at(1<<32-1, 1<<64-1)
	largest.Behind = slices.Repeat([]tasklog.Place{largest.Place}, tasklog.MaxAttempts-1)
	id := events.TaskID(strings.Repeat("x", events.MaxIDBytes))
	for _, c := range []tasklog.Cursor{{}, at(1, 0), placed, rich, {Told: true}, largest} {
		if got, err := tasklog.ParseCursor(c.Text(id, ofLife), id, ofLife); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v, %v; want %+v", got, err, c)
		}
	}
	if got, err := tasklog.ParseCursor("", ofTask, ofLife); err != nil || !reflect.DeepEqual(got, tasklog.Cursor{}) {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
}

func TestParseCursor_RefusesThoseOfOtherLogs(t *testing.T) {
	for want, text := range map[string]string{
		"of task a/c":           placed.Text("a/c", ofLife),
		"of another life":       placed.Text(ofTask, ofLife+1),
		"none of a log":         "k6dIaXN0b3J5Ag",
		"has 1024 at most":      strings.Repeat("A", 1025),
		"cursor: it is garbled": placed.Text(ofTask, ofLife)[:20],
	} {
		if _, err := tasklog.ParseCursor(text, ofTask, ofLife); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestParseCursor_BombsCostLittle(t *testing.T) {
	sample, err := base64.RawURLEncoding.DecodeString(rich.Text(ofTask, ofLife))
	if err != nil {
		t.Fatal(err)
	}
	testkit.CheckGrafts(t, sample, 512, func(b []byte) error {
		if len(b) == 0 { // the beginning
			return events.ErrDamaged
		}
		_, err := tasklog.ParseCursor(base64.RawURLEncoding.EncodeToString(b), ofTask, ofLife)
		return err
	})
}

// FuzzParseCursor reads any text: what is accepted is what Text returns, and of what was asked for.
func FuzzParseCursor(f *testing.F) {
	f.Add(placed.Text(ofTask, ofLife))
	f.Add(placed.Text("c", 1))
	f.Add(rich.Text(ofTask, ofLife))
	f.Add("k6dIaXN0b3J5Ag")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := tasklog.ParseCursor(text, ofTask, ofLife)
		invalid, is := errors.AsType[*events.InvalidError](err)
		if err == nil && text != "" && c.Text(ofTask, ofLife) != text || err != nil && (!is || invalid.Field != "cursor") {
			t.Errorf("%q is read as %+v, %v", text, c, err)
		}
	})
}

func TestParseLevel_ReadsWhatStringReturns(t *testing.T) {
	for _, l := range []tasklog.Level{tasklog.Info, tasklog.Error} {
		if got, err := tasklog.ParseLevel(l.String()); err != nil || got != l {
			t.Errorf("%s, %v; want %s", got, err, l)
		}
	}
	if _, err := tasklog.ParseLevel("warn"); err == nil || !strings.Contains(err.Error(), "want info or error") {
		t.Errorf("another one: %v", err)
	}
}
