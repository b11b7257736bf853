package history_test

import (
	"testing"

	"taskledger/integration/robustness/history"
)

// Texts are compared: they depend on what is paused alone, not on its order, and tell every field apart.
func TestPausedText_IsThatOfWhatIsPaused(t *testing.T) {
	a, b := history.PausedBehavior{Behavior: "a", Reason: "why", By: "ada", Since: 1}, history.PausedBehavior{Behavior: "b"}
	if x, y := history.PausedText([]history.PausedBehavior{a, b}), history.PausedText([]history.PausedBehavior{b, a}); x != y {
		t.Errorf("%q and %q are of the same", x, y)
	}
	seen := map[string]bool{history.PausedText(nil): true}
	for _, other := range []history.PausedBehavior{a, {"c", "why", "ada", 1}, {"a", "", "ada", 1}, {"a", "why", "", 1}, {"a", "why", "ada", 2}} {
		text := history.PausedText([]history.PausedBehavior{other})
		if seen[text] {
			t.Errorf("%+v is %q, as another", other, text)
		}
		seen[text] = true
	}
}
