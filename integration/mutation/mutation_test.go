package main

import (
	"go/parser"
	"go/token"
	"io"
	"slices"
	"strings"
	"testing"
)

// The numbers of today never fall. Whoever adds a row raises the number here.
const (
	leastMutations = 311
	leastPlanted   = 95
)

func TestTables_NeverShrink(t *testing.T) {
	if n := len(mutations); n != leastMutations {
		t.Errorf("%d mutations, want %d: raise the number with the table, and never lower it", n, leastMutations)
	}
	if n := len(plantedBugs); n != leastPlanted {
		t.Errorf("%d planted bugs, want %d: raise the number with the table, and never lower it", n, leastPlanted)
	}
}

func TestEverything_FitsTheCodeAtOnce(t *testing.T) {
	t.Chdir("../..")
	texts, err := mergeAll(everything())
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range texts {
		if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
			t.Error(err)
		}
	}
}

func TestMutations_HaveTestsOfOneName(t *testing.T) {
	t.Chdir("../..")
	packages, err := packagesOfTests()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		if packages[m.function()] == "" {
			t.Errorf("%s: want one package that has %s", m.name, m.function())
		}
	}
}

func TestTables_NameEachOnce(t *testing.T) {
	seen := map[string]bool{}
	once := func(name string) {
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
	}
	for _, m := range everything() {
		once(m.name)
	}
	for _, p := range plantedBugs {
		if !seen[p.name] {
			t.Errorf("%s has no edits", p.name)
		}
		once(p.harness() + ": " + p.name)
	}
}

// Servers that stop slowly break invariant 13, and none of the rules is about what remains.
func TestPlantedBugs_NameWhatMayNoticeThem(t *testing.T) {
	can := strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 14 15 16 17 18 linear")
	for _, p := range plantedBugs {
		if len(p.by) == 0 {
			t.Errorf("%s: nothing may notice it", p.name)
		}
		for _, by := range p.by {
			if by != noEnd && !slices.Contains(can, by) {
				t.Errorf("%s: %q cannot notice it", p.name, by)
			}
		}
	}
}

func TestRun_OfNothingFailsAndNamesTheText(t *testing.T) {
	for _, args := range [][]string{
		{"comit"}, {"test", "comit"}, {"hunt", "comit"}, {"hunt", "--harness", real, "retry counted twice"},
	} {
		text := args[len(args)-1]
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestRun_WantsACommand(t *testing.T) {
	if err := run(t.Context(), nil, io.Discard); err == nil {
		t.Error("nothing is a command")
	}
}
