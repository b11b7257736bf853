package requests

import (
	"errors"
	"strings"
	"testing"

	"taskledger/task"
)

func TestRead_KeepsFewOfManyWrongLinesAndCountsAll(t *testing.T) {
	_, err := Read([]byte(strings.Repeat("nonsense\n", 5000)), false, nil)
	problems, ok := errors.AsType[*Problems](err)
	if !ok || len(problems.Errs) != 10 || !strings.HasPrefix(err.Error(), "5000 lines are wrong") || !strings.HasSuffix(err.Error(), "\nand 4990 more") ||
		strings.Count(err.Error(), "\n") != 11 {
		t.Errorf("%v", err)
	}
}

func TestRead_NamesTheFieldOfATimeTooFarAhead(t *testing.T) {
	for field, want := range map[string]string{
		`"at":"9999-01-01T00:00:00Z"`: `line 1: at "9999-01-01T00:00:00Z": want ten years ahead at most`,
		`"delay":"87600h1s"`:          `line 1: delay "87600h1s": want ten years at most`,
	} {
		_, err := Read([]byte(`{"behavior":"noop",`+field+"}\n"), false, nil)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", field, err, want)
		}
	}
}

func TestRead_CountsRequestsBeyondTheLimit(t *testing.T) {
	_, err := Read([]byte(strings.Repeat(`{"behavior":"noop"}`+"\n", 3000)), false, nil)
	if limit, ok := errors.AsType[*task.LimitError](err); !ok || limit.Got != 3000 {
		t.Errorf("%v", err)
	}
}

// Requests of one key are about different tasks: the lines are named as the file counts them.
func TestRead_NamesTheLinesOfOneKeyThatNameATaskTwice(t *testing.T) {
	text := []byte(`{"behavior":"noop","id":"a"}` + "\n\n" + `{"behavior":"noop"}` + "\n" + `{"behavior":"noop","id":"a"}` + "\n" + `{"behavior":"noop"}` + "\n")
	if _, err := Read(text, true, nil); err == nil || !strings.Contains(err.Error(), "line 4: id: line 1 of the same key names task a, too") {
		t.Errorf("%v", err)
	}
	left := 0
	if lines, err := Read(text, true, func(line int, _ error) { left = line }); err != nil || len(lines) != 3 || left != 4 {
		t.Errorf("%d lines, %v, without line %d", len(lines), err, left)
	}
	if lines, err := Read(text, false, nil); err != nil || len(lines) != 4 {
		t.Errorf("without a key: %d lines, %v", len(lines), err)
	}
}
