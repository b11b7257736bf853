package task_test

import (
	"strings"
	"testing"

	"taskledger/task"
)

func TestLimitError_SaysTrueThingsAboveTheLimitAndBelowZero(t *testing.T) {
	for got, want := range map[int64]string{
		9_223_372: "priority: 9223372 exceeds the limit of 9223371",
		-1:        "priority: -1, want 0 to 9223371",
	} {
		if text := (&task.LimitError{Field: "priority", Limit: 9_223_371, Got: got}).Error(); text != want {
			t.Errorf("%d: %q, want %q", got, text, want)
		}
	}
	if text := (&task.LimitError{Field: "keep", Limit: 1000, Got: 1001}).Error(); strings.Contains(text, "bytes") {
		t.Errorf("of a number of runs: %q", text)
	}
	text := (&task.LimitError{Field: "parameters", Limit: 262_144, Got: 300_000}).Error()
	if want := "parameters: 300000 exceeds the limit of 262144 bytes"; text != want {
		t.Errorf("of a text: %q, want %q", text, want)
	}
}
