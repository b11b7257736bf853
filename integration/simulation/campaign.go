package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
	"taskledger/integration/simulation/machine"
)

// shownMost bounds the violations of one history that are printed.
const shownMost = 20

// campaign makes histories, judges them and counts.
type campaign struct {
	options
	program string // that makes them
	replay  bool   // prints more

	mu         sync.Mutex
	out        io.Writer
	made       int
	rejected   int // of these: they prove nothing
	red        int
	violations int
	commands   int
	operations int
	executions int
	entries    int
	trimmed    int            // of these
	faults     map[string]int // by kind, those that bit
	idle       int            // those that did not
	problems   []error
}

// run makes all histories, a few at a time.
func (c *campaign) run(ctx context.Context) error {
	began, used := time.Now(), processorTime()
	c.faults = map[string]int{}
	seeds := make(chan uint64)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var workers sync.WaitGroup
	for range c.parallel {
		workers.Go(func() {
			for seed := range seeds {
				if c.one(ctx, seed) && c.stop {
					stop()
				}
			}
		})
	}
	for i := range uint64(c.histories) {
		select {
		case seeds <- c.seed + i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(seeds)
	workers.Wait()
	c.summary(time.Since(began), processorTime()-used)
	err := errors.Join(c.problems...)
	if c.red > 0 {
		err = errors.Join(err, errRed)
	}
	return err
}

// one makes and judges one history, and reports whether it is red.
func (c *campaign) one(ctx context.Context, seed uint64) (red bool) {
	h, err := machine.History(ctx, c.program, seed)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.made++
		c.red++
		c.violations++
		c.lost(seed, err.Error())
		return true
	}
	violations := check.All(h)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(h)
	if len(violations) > 0 {
		c.red++
		c.violations += len(violations)
		c.show(h, violations)
	}
	if c.keep != "" && (c.replay || len(violations) > 0) {
		dir := filepath.Join(c.keep, "seed-"+strconv.FormatUint(seed, 10))
		if err := history.Save(dir, h); err != nil {
			c.problems = append(c.problems, err)
		}
		fmt.Fprintf(c.out, "  kept in %s\n", dir)
	}
	return len(violations) > 0
}

// lost tells of a history that was not made, and keeps all that its program wrote.
func (c *campaign) lost(seed uint64, told string) {
	const shown = 600
	fmt.Fprintf(c.out, "RED %s\n  %s\n", told[:min(len(told), shown)], c.again(seed))
	if c.keep == "" {
		return
	}
	path := filepath.Join(c.keep, fmt.Sprintf("seed-%d.txt", seed))
	if err := errors.Join(os.MkdirAll(c.keep, 0o700), os.WriteFile(path, []byte(told), 0o600)); err != nil {
		c.problems = append(c.problems, err)
	}
	fmt.Fprintf(c.out, "  kept in %s\n", path)
}

// processorTime is what this process and those that it has waited for have used.
func processorTime() (used time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if err := syscall.Getrusage(who, &r); err != nil {
			panic(err) // its arguments are valid
		}
		used += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return used
}

func (c *campaign) again(seed uint64) string {
	command := fmt.Sprintf("go run ./integration/simulation replay %d", seed)
	if c.overlay != "" {
		command = fmt.Sprintf("go run ./integration/simulation replay --overlay %s %d", c.overlay, seed)
	}
	return command
}

// count adds a history to the sums.
func (c *campaign) count(h *history.Run) {
	c.made++
	c.operations += len(h.Operations)
	c.executions += len(h.Executions)
	c.commands += machine.Commands(h)
	if len(h.Info.Problems) > 0 {
		c.rejected++
	}
	for _, shard := range h.Members[0].Entries {
		c.entries += len(shard)
	}
	c.trimmed += h.Info.Trimmed
	for _, f := range h.Faults {
		if f.Proof == "" {
			c.idle++
			continue
		}
		c.faults[f.Kind]++
	}
}

// show prints what is wrong with a history.
func (c *campaign) show(h *history.Run, violations []check.Violation) {
	fmt.Fprintf(c.out, "RED seed %d: %d violations\n  %s\n", h.Info.Seed, len(violations), c.again(h.Info.Seed))
	for _, v := range violations[:min(len(violations), shownMost)] {
		fmt.Fprintf(c.out, "  %s\n", v)
	}
}

func (c *campaign) summary(took, used time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, "%d histories in %s, %.0f a minute, each %s of a processor; %d rejected, %d red, %d violations\n",
		c.made, took.Round(time.Millisecond), float64(c.made)/took.Minutes(), (used / time.Duration(max(c.made, 1))).Round(time.Millisecond), c.rejected, c.red, c.violations)
	fmt.Fprintf(c.out, "%d operations, of which %d commands; %d executions, %d entries, of which %d trimmed\n", c.operations, c.commands, c.executions, c.entries, c.trimmed)
	for _, kind := range slices.Sorted(maps.Keys(c.faults)) {
		fmt.Fprintf(c.out, "  %-24s %d\n", kind, c.faults[kind])
	}
	fmt.Fprintf(c.out, "  %-24s %d\n", "that did not bite", c.idle)
}
