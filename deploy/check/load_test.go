package main

import (
	"errors"
	"strings"
	"testing"
)

// A task that no node takes while the nodes are ready is told, also where the others have run.
func TestJudge_TellsOfTasksThatNoNodeHasTaken(t *testing.T) {
	l := &load{effects: map[string]int{}, refused: []error{errors.New("no node has taken task b: full")}}
	if err := l.judge(t.Context()); err == nil || !strings.Contains(err.Error(), "no node has taken task b: full") {
		t.Error(err)
	}
}

// Each loss that is planted is told by the name of its task.
func TestCompare_TellsOfEffectsThatAreMissingDoubledOrOfNobody(t *testing.T) {
	taken := []string{"a", "b"}
	for name, c := range map[string]struct {
		taken   []string
		effects map[string]int
		want    string // none = no error
	}{
		"each once":          {taken, map[string]int{"a": 1, "b": 1}, ""},
		"no task":            {nil, map[string]int{}, "have taken no task"},
		"one is missing":     {taken, map[string]int{"a": 1}, "task b is lost"},
		"one is doubled":     {taken, map[string]int{"a": 2, "b": 1}, "task a had its effect 2 times"},
		"not acknowledged":   {taken, map[string]int{"a": 1, "b": 1, "c": 1}, "task c had an effect, and no node has"},
		"doubled and nobody": {taken, map[string]int{"a": 1, "b": 1, "c": 2}, "task c had its effect 2 times"},
	} {
		err := compare(c.taken, c.effects)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
