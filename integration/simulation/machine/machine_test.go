package machine_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"taskledger/integration/simulation/machine"
)

// How long a program takes is the machine's affair: it hangs once it has used up its time of a processor.
func TestRun_AProgramThatUsesUpItsTimeOfAProcessorHangs(t *testing.T) {
	for said, want := range map[string]error{"SIGXCPU: cpu limit exceeded": machine.ErrHangs, "panic: for some other cause": nil} {
		program := filepath.Join(t.TempDir(), "program")
		frame := `printf '\000\000PB\000\000\000\000\000\000\000\000\000\000\000\033` + said + `' >&2; exit 2`
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+frame+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := machine.Run(t.Context(), program, 7); err == nil || errors.Is(err, machine.ErrHangs) != (want != nil) {
			t.Errorf("a program that says %q: %v", said, err)
		}
	}
}
