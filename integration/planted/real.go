package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// realProcesses is the harness that runs real processes.
type realProcesses struct{ sound string } // program without a bug

func newReal(ctx context.Context, dir string) (*realProcesses, error) {
	path, err := buildReal(ctx, dir, "")
	return &realProcesses{path}, err
}

func buildReal(ctx context.Context, dir, overlay string) (string, error) {
	path := filepath.Join(dir, "robustness")
	args := []string{"build", "-ldflags=-s -w", "-o", path}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	if out, err := exec.CommandContext(ctx, "go", append(args, "./integration/robustness")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the harness: %w\n%s", err, out)
	}
	return path, nil
}

func (r *realProcesses) most() int { return 200 }

func (r *realProcesses) build(ctx context.Context, dir, overlay string, p *planted) (hunt, error) {
	path, err := buildReal(ctx, dir, overlay)
	return &realHunt{r.sound, path, dir, p.faults}, err
}

// realHunt implements hunt.
type realHunt struct {
	sound, broken string // programs
	dir           string
	faults        string
}

func (h *realHunt) find(ctx context.Context, seed uint64, most int) (f finding, err error) {
	for f.histories < most {
		at := seed + uint64(f.histories)
		noticed, err := h.judge(ctx, h.broken, at)
		if err != nil {
			return f, err
		}
		f.histories++
		if noticed == "" {
			continue
		}
		known, err := h.judge(ctx, h.sound, at)
		if err != nil {
			return f, err
		}
		if known == "" {
			f.seed, f.noticed = at, noticed
			return f, nil
		}
	}
	return f, nil
}

// judge returns the invariants that one history breaks; "" = none, or it proves nothing.
func (h *realHunt) judge(ctx context.Context, program string, seed uint64) (string, error) {
	summary, kept := filepath.Join(h.dir, "summary.json"), filepath.Join(h.dir, "kept")
	defer os.RemoveAll(kept)
	defer os.Remove(summary)
	c := exec.CommandContext(ctx, program, "run", "--seed", strconv.FormatUint(seed, 10), "--faults", h.faults, "--json", summary, "--out", kept)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	out, ran := c.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		return "", fmt.Errorf("seed %d: %w\n%s", seed, errors.Join(err, ran), out)
	}
	var told struct {
		Violated map[string]int `json:"violated"`
	}
	if err := json.Unmarshal(text, &told); err != nil {
		return "", fmt.Errorf("seed %d: read its summary: %w", seed, err)
	}
	return strings.Join(slices.Sorted(maps.Keys(told.Violated)), ", "), nil
}
