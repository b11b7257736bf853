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

// encoding/json takes a name in any case, and the last of two.
func TestRead_RefusesNamesInAnotherCaseAndThoseThatComeTwice(t *testing.T) {
	for line, want := range map[string]string{
		`{"behavior":"noop","Id":"x"}`:            "line 1: Id: the field is named id",
		`{"behavior":"noop","id":"x","ID":""}`:    "line 1: ID: the field is named id",
		`{"behavior":"noop","id":"x","id":""}`:    "line 1: id: it is there more than once",
		`{"behavior":"noop","parms":1}`:           "line 1: parms: the request has no such field",
		`{"behavior":"noop",}`:                    "line 1: want a JSON object: byte 20: invalid character '}' looking for beginning of object key string",
		`{"behavior":"noop"`:                      "line 1: want a JSON object: unexpected EOF",
		`{"behavior":"noop"} {}`:                  "line 1: want one JSON object on a line",
		"{\"behavior\":\"noop\",\"id\":\"\xff\"}": "line 1: the body is no UTF-8",
	} {
		if _, err := Read([]byte(line), false, nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	absent := `{"behavior":"noop","params":null,"id":null,"key":null,"delay":null,"at":null,"priority":null}`
	cased := `{"behavior":"noop","params":{"Id":1,"id":2,"ID":3,"ID":4}}`
	if lines, err := Read([]byte(absent+"\n"+cased), false, nil); err != nil || len(lines) != 2 || lines[0].ID != "" {
		t.Errorf("null, and names in parameters: %+v, %v", lines, err)
	}
}

func TestRead_CountsRequestsBeyondTheLimit(t *testing.T) {
	text := []byte(strings.Repeat(`{"behavior":"noop"}`+"\n", 3000))
	_, err := Read(text, true, nil)
	if limit, ok := errors.AsType[*task.LimitError](err); !ok || limit.Got != 3000 {
		t.Errorf("of one key: %v", err)
	}
	if lines, err := Read(text, false, nil); err != nil || len(lines) != 3000 {
		t.Errorf("each for itself: %d lines, %v", len(lines), err)
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
