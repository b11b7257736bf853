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

	"taskledger/integration/bugs"
)

// realProcesses is the harness that runs real processes.
type realProcesses struct{}

func (realProcesses) most() int { return 200 }

func (realProcesses) build(ctx context.Context, dir, overlay string) (program string, err error) {
	program = filepath.Join(dir, "robustness")
	if err := bugs.Build(ctx, overlay, "build", "-o", program+typed, "./cmd/node"); err != nil {
		return "", err
	}
	return program, bugs.Build(ctx, overlay, "build", "-o", program, "./integration/robustness")
}

// typed ends the path of the command line program, which lies beside that of the driver.
const typed = ".typed"

// judge runs one history. The driver writes the result into a summary, and prints the broken invariants.
func (realProcesses) judge(ctx context.Context, program, faults string, seed uint64) (v verdict, err error) {
	summary, kept := program+".json", program+".kept"
	defer os.RemoveAll(kept)
	defer os.Remove(summary)
	c := exec.CommandContext(ctx, program, "run", "--seed", strconv.FormatUint(seed, 10), "--faults", faults, "--program", program+typed, "--json", summary, "--out", kept)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	out, ran := c.CombinedOutput()
	if ctx.Err() != nil {
		return v, ctx.Err()
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		return v, fmt.Errorf("%w\n%s", errors.Join(err, ran), out)
	}
	return summarized(text, string(out))
}

// summarized is the verdict on the one history of a summary; printed is what the driver printed beside it.
func summarized(summary []byte, printed string) (v verdict, _ error) {
	var told struct {
		Histories int            `json:"histories"`
		Rejected  int            `json:"rejected"`
		Violated  map[string]int `json:"violated"`
	}
	if err := json.Unmarshal(summary, &told); err != nil {
		return v, fmt.Errorf("read its summary: %w", err)
	}
	v.judged = told.Histories == 1 && told.Rejected == 0
	for invariant := range told.Violated {
		v.note(invariant, strings.TrimPrefix(firstLine(printed, "violation: "+invariant), "violation: "))
	}
	return v, nil
}
