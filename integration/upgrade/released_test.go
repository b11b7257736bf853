//go:build released

package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/behaviors/builtin"
	"taskledger/events"
	"taskledger/task"
)

// The release is the commit that the file FROM names: a clone has it, or its origin gives it.
func TestUpgrade_FromTheReleaseBefore(t *testing.T) {
	text, err := os.ReadFile("FROM")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	sources, before, after := t.TempDir(), filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "after")
	if err := checkOut(t, strings.TrimSpace(string(text)), sources); err != nil {
		t.Fatal(err)
	}
	node := func(dir, path string) func() error {
		return func() error { return run(t, dir, nil, "go", "build", "-o", path, "./integration/upgrade") }
	}
	build(t, node(sources, before), node(".", after))
	replaced(t, before, after, func(l *load, id events.TaskID) error {
		_, err := l.client.Submit(within(l.T), builtin.Noop(), nil, task.SubmitOptions{ID: id, Tags: []string{"later"}})
		return err
	})
}

// checkOut writes the files of a commit.
func checkOut(t *testing.T, commit, dir string) error {
	if run(t, ".", nil, "git", "cat-file", "-e", commit+"^{commit}") != nil {
		if err := run(t, ".", nil, "git", "fetch", "--quiet", "--depth=1", "origin", commit); err != nil {
			return fmt.Errorf("the clone lacks commit %s, from which the upgrade begins: %w", commit, err)
		}
	}
	archive := exec.CommandContext(t.Context(), "git", "archive", "--format=tar", commit)
	out, err := archive.Output()
	if err != nil {
		return fmt.Errorf("git archive: %w", err)
	}
	return run(t, dir, out, "tar", "-x")
}

// run runs a program in a directory; its error has what the program said.
func run(t *testing.T, dir string, in []byte, name string, args ...string) error {
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Stdin = dir, bytes.NewReader(in)
	said, err := c.CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err), errors.New(string(said)))
	}
	return nil
}
