//go:build unix

package drivers_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/collections"
	"taskledger/internal/testkit"
)

func script(text string) collections.Driver {
	return collections.Driver{
		Driver:  collections.Exec,
		Program: "sh",
		Args:    []string{"-c", text},
	}
}

func TestExec_RunsAProgramWhoseOutputIsTheLog(t *testing.T) {
	f := newFixture(t)
	f.Exec = builtin.ExecOptions{Allow: []string{"sh"}, Env: []string{"A"}}
	d := script("echo $A in $PWD; read x <&0 || true")
	d.Env, d.Dir = map[string]string{"A": "1"}, f.Root
	o, lines := f.run(t.Context(), d)
	if o.Err != nil || !slices.Equal(lines, []string{"INFO 1 in " + f.Root}) {
		t.Errorf("failure %+v, log %q", o.Err, lines)
	}
}

func TestExec_FailsAsThatBehaviorDoes(t *testing.T) {
	f := newFixture(t)
	f.Exec.Allow = []string{"sh"}
	o, lines := f.run(t.Context(), script("echo why >&2; exit 3"))
	e := testkit.WantFailure(t, o, builtin.CodeExit, false)
	if !slices.Equal(lines, []string{"ERROR why", "ERROR " + e.Message}) || e.Properties["exit_code"] != "3" {
		t.Errorf("log %q, error %+v", lines, e)
	}
	d := script("true")
	d.Dir = "relative"
	f.fails(d, builtin.CodeInvalid, "dir")
}

func TestExec_ANodeThatDoesNotAllowItIsNamedWithTheFlag(t *testing.T) {
	f := newFixture(t)
	f.Exec.Allow = []string{"sh"}
	d := script("true")
	d.Env = map[string]string{"LD_PRELOAD": "x"}
	f.fails(d, builtin.CodeRefused, `node "b"`, "LD_PRELOAD", "--exec-env")
	d.Program = "rm"
	f.fails(d, builtin.CodeRefused, `node "b"`, `"rm"`, "--exec-allow")
	f = newFixture(t)
	f.fails(script("true"), builtin.CodeRefused, `node "b"`, `"sh"`, "--exec-allow")
}

// Whoever reads that a program is not there wants to know where, also if it was there when the node started.
func TestExec_ANodeWhoseProgramIsGoneIsNamedWithTheFlag(t *testing.T) {
	f := newFixture(t)
	there := filepath.Join(f.Root, "sync-meters")
	must(t, os.WriteFile(there, []byte("#!/bin/sh\n"), 0o700)) //nolint:gosec // it is a program
	f.Exec.Allow = []string{there, "not-there-at-all"}
	d := script("true")
	d.Program = there
	f.does(d)
	must(t, os.Chmod(there, 0o600))
	f.fails(d, builtin.CodePermission, `node "b"`, there, "--exec-allow")
	must(t, os.Remove(there))
	f.fails(d, builtin.CodeNotFound, `node "b"`, there, "--exec-allow")
	d.Program = "not-there-at-all"
	f.fails(d, builtin.CodeNotFound, `node "b"`, d.Program, "--exec-allow")
}

// What a program leaves behind would write to the same files as the next run.
func TestExec_ACancelledRunLeavesNoProcess(t *testing.T) {
	f := newFixture(t)
	f.Exec = builtin.ExecOptions{Allow: []string{"sh"}, Grace: time.Millisecond}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("cancelled by Ada")
	ended := false
	f.Exec.Hold = func(int) func() {
		cancel(cause)
		return func() { ended = true }
	}
	o, _ := f.run(ctx, script("trap '' TERM; sleep 1000 & wait"))
	if e := testkit.WantFailure(t, o, "failed", false); e.Message != cause.Error() || !ended {
		t.Errorf("error %+v; the group has ended: %t", e, ended)
	}
}
