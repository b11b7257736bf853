package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"taskledger/integration/simulation/build"
)

// machineError returns the machine's error about a program that a shell command stands for, and that wrote so.
func machineError(t *testing.T, command, wrote string) error {
	t.Helper()
	return fmt.Errorf("seed 7: %w\n%s", exec.CommandContext(t.Context(), "sh", "-c", command).Run(), wrote)
}

func TestEnded_TellsNoEndFromACrash(t *testing.T) {
	const dump = "\n\ngoroutine 1 [running]:\nmain.main()\n\tprogram.go:25\n"
	for name, c := range map[string]struct {
		err            error
		broken, reason string // "" = an error of the harness
	}{
		"gives up":     {machineError(t, "exit 1", "no answer\nand more"), noEnd, "no answer"},
		"is not made":  {machineError(t, "exit 2", unmade+" 5m0s"+dump), noEnd, unmade + " 5m0s"},
		"computes":     {fmt.Errorf("seed 7: %w\nSIGQUIT: quit"+dump, build.ErrHangs), noEnd, build.ErrHangs.Error()},
		"panics":       {machineError(t, "exit 2", "noise\npanic: nil map"+dump), panicked, "panic: nil map"},
		"is fatal":     {machineError(t, "exit 2", "fatal error: no memory"+dump), panicked, "fatal error: no memory"},
		"is killed":    {machineError(t, "kill -9 $$", ""), "", ""},
		"is not there": {fmt.Errorf("seed 7: %w", os.ErrNotExist), "", ""},
		"exits oddly":  {machineError(t, "exit 127", "no such library"), "", ""},
	} {
		v, err := ended(c.err)
		if harness := c.broken == ""; (err != nil) != harness || v.judged == harness || v.broken[c.broken] != c.reason {
			t.Errorf("a program that %s: %+v, %v", name, v, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("a program that %s: the error has several lines: %v", name, err)
		}
	}
}

func TestUnmade_IsWhatTheProgramSays(t *testing.T) {
	text, err := os.ReadFile("../simulation/program.go")
	if err != nil {
		t.Fatal(err)
	}
	if said := `panic("` + strings.TrimPrefix(unmade, "panic: "); !strings.Contains(string(text), said) {
		t.Errorf("the program does not say %s", said)
	}
}

func TestSummarized_JudgesWhatProvesSomething(t *testing.T) {
	const how = "6 fenced: shard 1, entry 4: of an ended session"
	const printed = "violated seed 1: 7 operations\n  violation: 1 entries: other\n  violation: " + how + "\n"
	v, err := summarized([]byte(`{"histories": 1, "violated": {"6 fenced": 2}}`), printed)
	if err != nil || !v.judged || v.green() || v.broken["6"] != how {
		t.Errorf("violated: %+v, %v", v, err)
	}
	for text, green := range map[string]bool{
		`{"histories": 1}`:                true,
		`{"histories": 1, "rejected": 1}`: false,
		`{"histories": 0}`:                false,
	} {
		if v, err := summarized([]byte(text), ""); err != nil || v.green() != green {
			t.Errorf("%s: %+v, %v", text, v, err)
		}
	}
	if _, err := summarized([]byte("{"), ""); err == nil {
		t.Error("half a summary is judged")
	}
}
