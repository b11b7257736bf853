package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/integration/bugs"
)

// harness makes histories and judges them.
type harness interface {
	// build builds the program with the sources of an overlay in it; "" = none. dir is empty, and the caller's own.
	build(ctx context.Context, dir, overlay string) (program string, err error)
	// judge makes the history of a seed, under the faults of the names where the harness lets them be chosen. An error
	// says that the harness failed: nothing can be said of the program.
	judge(ctx context.Context, program, faults string, seed uint64) (verdict, error)
	// most returns the number of histories that a bug may take.
	most() int
}

// hunt looks for bugs.
type hunt struct {
	options
	dir       string // its own
	harnesses map[string]harness

	mu  sync.Mutex // guards out
	out io.Writer
}

// row holds the result of the hunt for a bug.
type row struct {
	*planted
	finding
	took time.Duration
	err  error // why it was not found
}

// finding says how a bug shows.
type finding struct {
	histories int      // that it took
	noticed   []string // the invariants of the bug that are broken in the last one
	how       string   // the first of these
}

var errNotFound = errors.New("not found")

// run looks for all the bugs: first for those that are simulated, side by side, and then for the others, which want the
// processors for themselves, one after another.
func (h *hunt) run(ctx context.Context, chosen []planted) []row {
	rows := make([]row, len(chosen))
	kinds := map[string][]*row{}
	for i := range chosen {
		rows[i].planted = &chosen[i]
		kinds[chosen[i].harness()] = append(kinds[chosen[i].harness()], &rows[i])
	}
	h.find(ctx, simulated, kinds[simulated], h.parallel)
	h.find(ctx, real, kinds[real], 1)
	return rows
}

// find fills in the rows, all of one harness, so many at once.
func (h *hunt) find(ctx context.Context, kind string, rows []*row, atOnce int) {
	if len(rows) == 0 {
		return
	}
	sound, err := h.build(ctx, kind, filepath.Join(h.dir, kind), nil)
	var workers errgroup.Group
	workers.SetLimit(atOnce)
	for i, r := range rows {
		workers.Go(func() error {
			began := time.Now()
			if r.err = err; err == nil {
				r.finding, r.err = h.try(ctx, r.planted, sound, filepath.Join(h.dir, kind+strconv.Itoa(i)))
			}
			r.took = time.Since(began)
			h.tell(r)
			return nil
		})
	}
	_ = workers.Wait() // each has its error in its row
}

// build builds the program of a harness with bugs in it, in a new folder.
func (h *hunt) build(ctx context.Context, kind, dir string, of []bugs.Bug) (program string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	overlay := ""
	if len(of) > 0 {
		laid := dir + ".sources"
		if err := os.Mkdir(laid, 0o700); err != nil {
			return "", err
		}
		if overlay, err = bugs.Plant(laid, of...); err != nil {
			return "", err
		}
	}
	return h.harnesses[kind].build(ctx, dir, overlay)
}

// try builds the program with the bug and makes histories until one shows it.
func (h *hunt) try(ctx context.Context, p *planted, sound, dir string) (f finding, err error) {
	if ctx.Err() != nil {
		return f, ctx.Err()
	}
	defer os.RemoveAll(dir)
	broken, err := h.build(ctx, p.harness(), dir, p.of)
	if err != nil {
		return f, err
	}
	most := h.harnesses[p.harness()].most()
	if h.most > 0 {
		most = h.most
	}
	for f.histories < most {
		seed := h.seed + uint64(f.histories)
		f.histories++
		f.noticed, f.how, err = h.shows(ctx, p, broken, sound, seed)
		if err != nil {
			return f, fmt.Errorf("seed %d: %w", seed, err)
		}
		if len(f.noticed) > 0 {
			return f, nil
		}
	}
	return f, errNotFound
}

// shows returns which of the bug's invariants the history of a seed breaks, and how. None, when the sound program does not
// keep all invariants under that seed.
func (h *hunt) shows(ctx context.Context, p *planted, broken, sound string, seed uint64) (noticed []string, how string, err error) {
	with := h.harnesses[p.harness()]
	v, err := with.judge(ctx, broken, p.faults, seed)
	if err != nil {
		return nil, "", err
	}
	noticed = v.among(p.by)
	if len(noticed) == 0 {
		if crash, crashed := v.broken[panicked]; crashed {
			err = fmt.Errorf("the program crashes: %s", crash)
		}
		return nil, "", err
	}
	asItIs, err := with.judge(ctx, sound, p.faults, seed)
	if err != nil {
		return nil, "", fmt.Errorf("as it is: %w", err)
	}
	if !asItIs.green() {
		h.print("          %s, seed %d, as it is: %s", p.harness(), seed, &asItIs)
		return nil, "", nil
	}
	return noticed, v.broken[noticed[0]], nil
}

// tell prints the row of a bug.
func (h *hunt) tell(r *row) {
	if r.err != nil {
		h.print("NOT FOUND %s, %s: %s", r.name, r.harness(), firstLine(r.err.Error(), ""))
		return
	}
	h.print("found     %s, %s: %d histories, %.0f s: %s", r.name, r.harness(), r.histories, r.took.Seconds(), r.how)
}

func (h *hunt) print(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(h.out, format+"\n", args...)
}
