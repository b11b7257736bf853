package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestHello_PrintsWhatItsTaskReturnsAndStartsAgainOnTheSameData(t *testing.T) {
	program := filepath.Join(t.TempDir(), "hello")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	dir := t.TempDir()
	for range 2 {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Dir, cmd.Stderr, cmd.WaitDelay = dir, os.Stderr, time.Second
		out, err := cmd.Output()
		if err != nil || string(out) != "hello, Ada <nil>\n" {
			t.Errorf("printed %q, %v", out, err)
		}
	}
}
