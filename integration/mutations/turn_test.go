package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"taskledger/integration/bugs"
)

// chosen returns the names of the mutations that a turn runs, in the order of the table.
func chosen(t *testing.T, turn string) (names []string) {
	t.Helper()
	some, err := choose(t.Context(), []string{"-turn", turn}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range some {
		names = append(names, m.Name)
		if bugs.Mutations[m.number].Name != m.Name {
			t.Errorf("%s is numbered %d", m.Name, m.number)
		}
	}
	return names
}

func TestTurns_HaveEveryMutationOnceBetweenThem(t *testing.T) {
	all := chosen(t, "all")
	if len(all) != len(bugs.Mutations) {
		t.Errorf("all are %d of %d", len(all), len(bugs.Mutations))
	}
	var got []string
	for turn := 1; turn <= turns; turn++ {
		some := chosen(t, fmt.Sprint(turn))
		if least := len(all) / turns; len(some) < least || len(some) > least+1 {
			t.Errorf("turn %d has %d of %d mutations", turn, len(some), len(all))
		}
		got = append(got, some...)
	}
	slices.Sort(got)
	slices.Sort(all)
	if !slices.Equal(got, all) {
		t.Errorf("the turns have\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(all, "\n"))
	}
}

// Neighbours in the table break the same rule.
func TestTurns_HaveNoNeighboursOfTheTable(t *testing.T) {
	for row := range bugs.Mutations[1:] {
		for turn := 1; turn <= turns; turn++ {
			if inTurn(row, turn) && inTurn(row+1, turn) {
				t.Errorf("turn %d has the rows %d and %d", turn, row, row+1)
			}
		}
	}
}

// repository makes a repository of a commit for each turn the working directory.
func repository(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	for n := range turns {
		run("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", fmt.Sprint(n))
	}
}

func TestTurnOfCommit_CommitsInARowTakeAllTurns(t *testing.T) {
	repository(t)
	var got []int
	for n := range turns {
		if out, err := exec.CommandContext(t.Context(), "git", "checkout", "-q", fmt.Sprintf("HEAD~%d", min(n, 1))).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		turn, err := parseTurn(t.Context(), "auto")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, turn)
	}
	slices.Sort(got)
	if !slices.Equal(got, []int{1, 2, 3, 4, 5, 6}) {
		t.Errorf("turns of six commits: %v", got)
	}
}

// The count of a shallow clone's commits is its depth, whatever the commit.
func TestTurnOfCommit_GoesByTheHashInAShallowClone(t *testing.T) {
	repository(t)
	seen := map[int]bool{}
	for n := range 128 {
		turn, err := turnOfShallow(t, n)
		if err != nil {
			t.Fatal(err)
		}
		seen[turn] = true
		if len(seen) == turns {
			return
		}
	}
	t.Errorf("128 commits take turns %v", seen)
}

// turnOfShallow commits once more and returns the turn of a clone of that commit alone.
func turnOfShallow(t *testing.T, n int) (int, error) {
	t.Helper()
	script := fmt.Sprintf(`set -e
git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m shallow%d
git rev-parse HEAD > .git/shallow`, n)
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return turnOfCommit(t.Context())
}

func TestParseTurn_NamesWhatThereIs(t *testing.T) {
	for name, want := range map[string]int{"all": 0, "1": 1, "2": 2, "6": 6} {
		if got, err := parseTurn(t.Context(), name); err != nil || got != want {
			t.Errorf("turn %q is %d, %v, want %d", name, got, err, want)
		}
	}
	for _, name := range []string{"", "0", "7", "-1", "half"} {
		if _, err := parseTurn(t.Context(), name); err == nil || !strings.Contains(err.Error(), "1 to 6, auto or all") {
			t.Errorf("turn %q: %v", name, err)
		}
	}
}

func TestParseTurn_NeedsARepositoryForThatOfTheCommit(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GIT_CEILING_DIRECTORIES", "/")
	if _, err := parseTurn(context.Background(), "auto"); err == nil || !strings.Contains(err.Error(), "turn of the commit") {
		t.Errorf("turn: %v", err)
	}
}
