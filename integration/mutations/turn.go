package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// turns is how many commits in a row run the whole table between them. Each takes less than five minutes of two
// processors.
const turns = 6

// inTurn reports whether a row of the table is run in a turn, 1 to turns; 0 = every one. Neighbours in the table break the same
// rule, so that every turn has some of each.
func inTurn(row, turn int) bool { return turn == 0 || row%turns == turn-1 }

// parseTurn reads "all", the number of a turn, or "auto": the turn of the commit that is checked out.
func parseTurn(ctx context.Context, name string) (int, error) {
	switch name {
	case "all":
		return 0, nil
	case "auto":
		return turnOfCommit(ctx)
	}
	turn, err := strconv.Atoi(name)
	if err != nil || turn < 1 || turn > turns {
		return 0, fmt.Errorf("turn is %q: want 1 to %d, auto or all", name, turns)
	}
	return turn, nil
}

// turnOfCommit counts the commits up to the one that is checked out, so that as many in a row as there are turns run
// all mutations. A shallow clone does not know how many there are: there it goes by the commit's hash.
func turnOfCommit(ctx context.Context) (int, error) {
	shallow, err := git(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return 0, err
	}
	args, base := []string{"rev-list", "--count", "HEAD"}, 10
	if shallow == "true" {
		args, base = []string{"rev-parse", "--short=12", "HEAD"}, 16
	}
	out, err := git(ctx, args...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(out, base, 64)
	if err != nil {
		return 0, fmt.Errorf("git %s: %w", args[0], err)
	}
	return int(n%turns) + 1, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("find the turn of the commit: git %s: %w\n%s", args[0], err, complaint.String())
	}
	return strings.TrimSpace(string(out)), nil
}
