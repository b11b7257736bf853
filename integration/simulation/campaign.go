//go:build !faketime

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
	"taskledger/integration/simulation/build"
	"taskledger/integration/simulation/world"
)

// shownMost bounds the violations of one history that are printed.
const shownMost = 20

// campaign makes histories, judges them and counts.
type campaign struct {
	options
	program string // that makes them
	history func(ctx context.Context, program string, seed uint64) (*history.Run, error)
	replay  bool // prints more

	mu         sync.Mutex
	out        io.Writer
	made       int
	rejected   int // of these: they prove nothing, count nowhere else, and are drawn again
	red        int
	violations int
	commands   int // that change something
	done       int // of these: acknowledged
	operations int
	executions int
	stored     map[history.Answer]int // calls that change task stores
	entries    int
	trimmed    int            // of these
	snapshots  int            // that were published
	kept       [2]int         // histories with snapshots, and with trims
	faults     map[string]int // by kind, those that bit
	idle       int            // those that did not
	reruns     reruns
	seen       check.Seen
	problems   []error
}

// run makes all histories, a few at a time.
func (c *campaign) run(ctx context.Context) error {
	began, used := time.Now(), processorTime()
	c.faults, c.seen = map[string]int{}, check.Seen{}
	given := ctx
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
	err := errors.Join(append(c.problems, given.Err())...)
	if c.red > 0 {
		err = errors.Join(err, errRed)
	}
	if ctx.Err() == nil {
		err = errors.Join(err, c.proved())
	}
	return err
}

const (
	// draws bounds the histories that are made of a seed until one proves something.
	draws = 3
	// rejectedMost bounds the share of the histories, in percent, that may prove nothing; a single one always may.
	rejectedMost = 5
	// large is the number of histories from which on every kind of fault must have bitten, and snapshots and trims been made.
	large = 500
)

// proved returns an error when the histories together prove too little.
func (c *campaign) proved() (err error) {
	lack := func(format string, args ...any) {
		err = errors.Join(err, fmt.Errorf(format+": %w", append(args, errRed)...))
	}
	proved := c.made - c.rejected
	if c.made == 0 || proved < c.histories {
		lack("%d of %d histories prove something", proved, max(c.made, c.histories))
	}
	if c.rejected > max(1, c.made*rejectedMost/100) {
		lack("%d of %d histories prove nothing, want %d %% at most", c.rejected, c.made, rejectedMost)
	}
	if proved < large {
		return err
	}
	for _, kind := range world.Kinds() {
		if c.faults[kind] == 0 {
			lack("fault %q never bit", kind)
		}
	}
	if c.snapshots == 0 || c.trimmed == 0 {
		lack("%d snapshots and %d trimmed entries", c.snapshots, c.trimmed)
	}
	if lacks := c.seen.Lacks(); len(lacks) > 0 {
		lack("too little was seen: no %s", strings.Join(lacks, ", no "))
	}
	if n := len(c.reruns.slow); n > 0 {
		lack("%d tasks of killed nodes ran again much later than promised", n)
	}
	if c.reruns.tooLate() {
		lack("of %d tasks of killed nodes %d ran again later than %s among other faults, one after %s: want 1 of 100 at most, and none after %s",
			len(c.reruns.other), len(c.reruns.among), amongMost, slices.Max(c.reruns.other), amongEach)
	}
	return err
}

// drawn returns the seed of a draw of a history: seed itself for the first draw, and seeds far beyond those of a campaign
// for the others.
func drawn(seed uint64, draw int) uint64 { return seed + uint64(draw)<<40 }

// one makes and judges the history of a seed, again under other seeds until it proves something, and reports whether it is
// red. A replay makes the history of the seed alone.
func (c *campaign) one(ctx context.Context, seed uint64) (red bool) {
	for draw := range draws {
		red, proves := c.judge(ctx, drawn(seed, draw))
		if red || proves || c.replay || ctx.Err() != nil {
			return red
		}
	}
	return false
}

// judge makes and judges one history.
func (c *campaign) judge(ctx context.Context, seed uint64) (red, proves bool) {
	h, err := c.history(ctx, c.program, seed)
	if ctx.Err() != nil {
		return false, false
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.made++
		c.red++
		c.violations++
		c.lost(seed, err.Error())
		return true, false
	}
	judged := check.Judge(h)
	violations := judged.Violations
	h.Info.Problems = judged.Problems
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(h, judged.Seen)
	if len(violations) > 0 {
		c.red++
		c.violations += len(violations)
		c.show(h, violations)
	}
	for _, problem := range h.Info.Problems {
		fmt.Fprintf(c.out, "seed %d proves nothing: %s\n", seed, problem)
	}
	if c.keep != "" && (c.replay || len(violations) > 0) {
		dir := filepath.Join(c.keep, "seed-"+strconv.FormatUint(seed, 10))
		if err := history.Save(dir, h); err != nil {
			c.problems = append(c.problems, err)
		}
		fmt.Fprintf(c.out, "  kept in %s\n", dir)
	}
	return len(violations) > 0, len(h.Info.Problems) == 0
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

// processorTime returns the time of processors that this process and its ended children have used.
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
func (c *campaign) count(h *history.Run, seen check.Seen) {
	c.made++
	if len(h.Info.Problems) > 0 {
		c.rejected++
		return
	}
	c.operations += len(h.Operations)
	c.executions += len(h.Executions)
	if c.stored == nil {
		c.stored = map[history.Answer]int{}
	}
	for answer, n := range build.Stored(h) {
		c.stored[answer] += n
	}
	commands, done := build.Commands(h)
	c.commands, c.done = c.commands+commands, c.done+done
	c.snapshots += h.Info.Snapshots
	for i, n := range []int{h.Info.Snapshots, h.Info.Trimmed} {
		if n > 0 {
			c.kept[i]++
		}
	}
	c.reruns.add(h)
	c.seen.Add(seen)
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
	fmt.Fprintf(c.out, "%d operations, of which %d change something, of which %d acknowledged; %d executions\n", c.operations, c.commands, c.done, c.executions)
	fmt.Fprintf(c.out, "%d changes of task stores acknowledged, %d refused, %d unknown\n", c.stored[history.OK], c.stored[history.Refused], c.stored[history.Unknown])
	fmt.Fprintf(c.out, "%d entries, of which %d trimmed in %d histories; %d snapshots in %d\n", c.entries, c.trimmed, c.kept[1], c.snapshots, c.kept[0])
	fmt.Fprintln(c.out, c.seen)
	fmt.Fprintln(c.out, c.reruns.String())
	for _, kind := range world.Kinds() {
		if n := c.faults[kind]; n > 0 {
			fmt.Fprintf(c.out, "  %-24s %d\n", kind, n)
		} else {
			fmt.Fprintf(c.out, "  %-24s never bit\n", kind)
		}
	}
	fmt.Fprintf(c.out, "  %-24s %d\n", "that did not bite", c.idle)
}
