package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"taskledger/integration/robustness/check"
	"taskledger/integration/simulation/build"
	"taskledger/integration/simulation/machine"
)

// atOnce is how many histories are simulated side by side.
const atOnce = 2

// simulation is the harness that simulates.
type simulation struct{ sound string } // program without a bug

func newSimulation(ctx context.Context, dir string) (*simulation, error) {
	path, err := build.Build(ctx, dir, "")
	return &simulation{path}, err
}

func (s *simulation) most() int { return 5000 }

func (s *simulation) build(ctx context.Context, dir, overlay string, _ *planted) (hunt, error) {
	path, err := build.Build(ctx, dir, overlay)
	return &simulatedHunt{s.sound, path}, err
}

// simulatedHunt implements hunt.
type simulatedHunt struct{ sound, broken string } // programs

// find returns the first seed that shows what is wrong, whoever finishes first.
func (h *simulatedHunt) find(ctx context.Context, seed uint64, most int) (finding, error) {
	var mu sync.Mutex
	var f finding
	next := uint64(0)
	claim := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == uint64(most) || f.noticed != "" || ctx.Err() != nil {
			return 0, false
		}
		next++
		return seed + next - 1, true
	}
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for at, ok := claim(); ok; at, ok = claim() {
				noticed := judge(ctx, h.broken, at)
				if noticed != "" && judge(ctx, h.sound, at) != "" {
					noticed = ""
				}
				mu.Lock()
				if noticed != "" && (f.noticed == "" || at < f.seed) {
					f.seed, f.noticed = at, noticed
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if f.histories = int(next); f.noticed != "" {
		f.histories = int(f.seed-seed) + 1
	}
	if f.noticed == "" && ctx.Err() != nil {
		return f, ctx.Err()
	}
	return f, nil
}

// judge returns the invariants that the history of a seed breaks; "" = none, or it hangs and proves nothing.
func judge(ctx context.Context, program string, seed uint64) string {
	h, err := machine.History(ctx, program, seed)
	switch {
	case ctx.Err() != nil, errors.Is(err, machine.ErrHangs):
		return ""
	case err != nil:
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		return "no end: " + lines[len(lines)-1]
	}
	var broken []string
	for _, v := range check.All(h) {
		broken = append(broken, v.Invariant)
	}
	return strings.Join(slices.Compact(broken), ", ")
}
