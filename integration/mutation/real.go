package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"taskledger/internal/testkit"
)

// realProcesses makes histories of real processes.
type realProcesses struct{}

func (realProcesses) name() string { return real }

func (realProcesses) most() int { return 200 }

func (realProcesses) build(ctx context.Context, dir, laid string) (program string, err error) {
	program = filepath.Join(dir, "robustness")
	if err := testkit.BuildOver(ctx, laid, "build", "-o", program+typed, "./cmd/node"); err != nil {
		return "", err
	}
	return program, testkit.BuildOver(ctx, laid, "build", "-o", program, "./integration/robustness")
}

// typed ends the path of the command line program, which lies beside that of the driver.
const typed = ".typed"

// judge runs one history. The driver writes the result into a summary, and prints the broken invariants.
func (realProcesses) judge(ctx context.Context, program, mutation, faults string, seed uint64) (h history, err error) {
	summary, kept := program+".json", program+".kept"
	defer os.RemoveAll(kept)
	defer os.Remove(summary)
	c := exec.CommandContext(ctx, program, "run", "--seed", strconv.FormatUint(seed, 10), "--faults", faults,
		"--program", program+typed, "--json", summary, "--out", kept)
	c.Env = append(os.Environ(), variable+"="+mutation)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	out, ran := c.CombinedOutput()
	if ctx.Err() != nil {
		return h, ctx.Err()
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		return h, fmt.Errorf("%w\n%s", errors.Join(err, ran), out)
	}
	return summarized(text, string(out))
}

// summarized returns what the one history of a summary shows. The driver printed the other text beside it.
func summarized(summary []byte, printed string) (h history, _ error) {
	var told struct {
		Histories int            `json:"histories"`
		Rejected  int            `json:"rejected"`
		Violated  map[string]int `json:"violated"`
	}
	if err := json.Unmarshal(summary, &told); err != nil {
		return h, fmt.Errorf("read its summary: %w", err)
	}
	h.judged = told.Histories == 1 && told.Rejected == 0
	for invariant := range told.Violated {
		h.note(invariant, strings.TrimPrefix(firstLine(printed, "violation: "+invariant), "violation: "))
	}
	return h, nil
}
