package check_test

import (
	"strings"
	"testing"

	"taskledger/integration/robustness/check"
)

func TestSeen_NamesWhatNoHistoryHeld(t *testing.T) {
	text := check.Seen{check.Repeated: 3}.String()
	if !strings.Contains(text, "; repetition: 3;") {
		t.Errorf("three repetitions read %q", text)
	}
	for _, what := range append(check.Wanted(), "tick skipped", "tick whose task was there") {
		if what != check.Repeated && !strings.Contains("; "+text+";", "; "+string(what)+": 0;") {
			t.Errorf("%q is not named: %s", what, text)
		}
	}
}
