package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"taskledger/events"
)

// PausedBehavior is a behavior that the settings keep from starting.
type PausedBehavior struct {
	Behavior, Reason string
	By               string // principal
	Since            events.Millis
}

// PausedText writes what is paused by behavior, a line each.
func PausedText(all []PausedBehavior) string {
	byBehavior := func(a, b PausedBehavior) int { return cmp.Compare(a.Behavior, b.Behavior) }
	var text strings.Builder
	for _, p := range slices.SortedFunc(slices.Values(all), byBehavior) {
		fmt.Fprintf(&text, "%s by %q since %d: %q\n", p.Behavior, p.By, p.Since, p.Reason)
	}
	return text.String()
}
