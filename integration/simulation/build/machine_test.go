package build_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"taskledger/integration/simulation/build"
)

// How long a program takes is the machine's affair: it hangs once it has used up its time of a processor.
func TestRun_AProgramThatUsesUpItsTimeOfAProcessorHangs(t *testing.T) {
	for said, want := range map[string]error{"SIGXCPU: cpu limit exceeded": build.ErrHangs, "panic: for some other cause": nil} {
		program := filepath.Join(t.TempDir(), "program")
		frame := `printf '\000\000PB\000\000\000\000\000\000\000\000\000\000\000\033` + said + `' >&2; exit 2`
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+frame+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := build.Run(t.Context(), program, 7); err == nil || errors.Is(err, build.ErrHangs) != (want != nil) {
			t.Errorf("a program that says %q: %v", said, err)
		}
	}
}

// A program that computes for ever may find no time for last words before the kernel kills it. One that is killed for
// another cause tells nothing.
func TestRun_AProgramThatIsKilledWhileItComputesHangs(t *testing.T) {
	defer build.SetComputes(build.SetComputes(time.Second / 2))
	for does, want := range map[string]error{"ulimit -t 1; while :; do :; done": build.ErrHangs, "kill -9 $$": nil} {
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := build.Run(t.Context(), program, 7); err == nil || errors.Is(err, build.ErrHangs) != (want != nil) {
			t.Errorf("%s: %v", does, err)
		}
	}
}
