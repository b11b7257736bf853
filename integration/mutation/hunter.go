package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// harness makes histories and judges them.
type harness interface {
	// build builds the program with the sources of an overlay in it. dir is empty, and the caller's own.
	build(ctx context.Context, dir, laid string) (program string, err error)
	// judge makes the history of a seed with the mutation of a name on, "" = none, under the faults of the names where the
	// harness lets them be chosen. An error says that the harness failed: nothing can be said of the program.
	judge(ctx context.Context, program, mutation, faults string, seed uint64) (history, error)
	// most returns the number of histories that a bug may take.
	most() int
	name() string
}

// hunter looks for planted bugs. One is found by a history that breaks one of the invariants that are named for it, and
// that the product as it is makes under the same seed with nothing broken.
type hunter struct {
	options
	court *court
	with  harness
}

var errNotFound = errors.New("not found")

// find builds the program, in a new folder of dir, and looks for those of the bugs that are for its harness.
func (h *hunter) find(ctx context.Context, dir, laid string, bugs []planted) error {
	bugs = slices.DeleteFunc(slices.Clone(bugs), func(p planted) bool { return p.harness() != h.with.name() })
	if len(bugs) == 0 {
		return nil
	}
	dir = filepath.Join(dir, h.with.name())
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	program, err := h.with.build(ctx, dir, laid)
	if err != nil {
		return err
	}
	for _, p := range bugs {
		h.court.judge(ctx, p.name, p.harness(), func() (finding, error) { return h.try(ctx, &p, program) })
	}
	h.court.running.Wait()
	return nil
}

// try makes histories of a bug until one shows it.
func (h *hunter) try(ctx context.Context, p *planted, program string) (f finding, err error) {
	for f.histories < cmp.Or(h.most, h.with.most()) {
		seed := h.seed + uint64(f.histories)
		f.histories++
		f.noticed, f.how, err = h.shows(ctx, p, program, seed)
		if err != nil {
			return f, fmt.Errorf("seed %d: %w", seed, err)
		}
		if len(f.noticed) > 0 {
			return f, nil
		}
	}
	return f, errNotFound
}

// shows returns which of the bug's invariants the history of a seed breaks, and how. None, when the sound program does
// not keep all invariants under that seed.
func (h *hunter) shows(
	ctx context.Context, p *planted, program string, seed uint64,
) (noticed []string, how string, err error) {
	broken, err := h.with.judge(ctx, program, p.name, p.faults, seed)
	if err != nil {
		return nil, "", err
	}
	noticed = broken.among(p.by)
	if len(noticed) == 0 {
		if crash, crashed := broken.broken[panicked]; crashed {
			err = fmt.Errorf("the program crashes: %s", crash)
		}
		return nil, "", err
	}
	asItIs, err := h.with.judge(ctx, program, "", p.faults, seed)
	if err != nil {
		return nil, "", fmt.Errorf("as it is: %w", err)
	}
	if !asItIs.green() {
		h.court.log.Printf("        %s, seed %d, as it is: %s", p.harness(), seed, &asItIs)
		return nil, "", nil
	}
	return noticed, broken.broken[noticed[0]], nil
}
