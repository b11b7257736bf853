package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What a history may show beside broken invariants, which are known by their numbers.
const (
	noEnd    = "no end" // the cluster does not serve when the faults have healed
	panicked = "panic"  // of a process; the program with the bug does not do what the bug says
)

// verdict says what the history of a seed shows of a program.
type verdict struct {
	judged bool              // it was made, and enough happened to prove something
	broken map[string]string // by invariant: how it shows
}

// note adds a broken invariant, each once. invariant has the form that package check gives it: its number comes first.
func (v *verdict) note(invariant, how string) {
	if number, _, named := strings.Cut(invariant, " "); named && invariant != noEnd {
		invariant = number
	}
	if v.broken == nil {
		v.broken = map[string]string{}
	}
	if _, again := v.broken[invariant]; !again {
		v.broken[invariant] = how
	}
}

// green reports whether the history proves that nothing is wrong.
func (v *verdict) green() bool { return v.judged && len(v.broken) == 0 }

// among returns those of the invariants that are broken, in their order.
func (v *verdict) among(invariants []string) []string {
	return slices.DeleteFunc(slices.Clone(invariants), func(i string) bool { _, broken := v.broken[i]; return !broken })
}

// String returns all that is wrong, in one line.
func (v *verdict) String() string {
	var all []string
	for _, invariant := range slices.Sorted(maps.Keys(v.broken)) {
		all = append(all, invariant+" ("+v.broken[invariant]+")")
	}
	if !v.judged {
		all = append(all, "too little happened")
	}
	return strings.Join(all, "; ")
}

// firstLine is the line of a text that begins so, or its first one. It is no longer than a line of a terminal or two.
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
