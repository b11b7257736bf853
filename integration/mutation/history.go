package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A history may show these beside broken invariants, which are known by their numbers.
const (
	noEnd    = "no end" // the cluster does not serve when the faults have healed
	panicked = "panic"  // of a process; the program with the bug does not do what the bug says
)

// history says what the history of a seed shows of a program.
type history struct {
	judged bool              // it was made, and enough happened to prove something
	broken map[string]string // by invariant: how it shows
}

// note adds a broken invariant, each once. invariant has the form that package check gives it: its number comes first.
func (h *history) note(invariant, how string) {
	if number, _, named := strings.Cut(invariant, " "); named && invariant != noEnd {
		invariant = number
	}
	if h.broken == nil {
		h.broken = map[string]string{}
	}
	if _, again := h.broken[invariant]; !again {
		h.broken[invariant] = how
	}
}

// green reports whether the history proves that nothing is wrong.
func (h *history) green() bool { return h.judged && len(h.broken) == 0 }

// among returns those of the invariants that are broken, in their order.
func (h *history) among(invariants []string) []string {
	return slices.DeleteFunc(slices.Clone(invariants), func(i string) bool { _, broken := h.broken[i]; return !broken })
}

// String returns all that is wrong, in one line.
func (h *history) String() string {
	var all []string
	for _, invariant := range slices.Sorted(maps.Keys(h.broken)) {
		all = append(all, invariant+" ("+h.broken[invariant]+")")
	}
	if !h.judged {
		all = append(all, "too little happened")
	}
	return strings.Join(all, "; ")
}

// firstLine returns the line of a text that begins so, or its first one. It is no longer than a line of a terminal or
// two.
func firstLine(text, beginning string) string {
	const most = 200
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, beginning) {
			line = l
			break
		}
	}
	return fmt.Sprintf("%.*s", most, line)
}
