// Command planted breaks the product in ways that its promises forbid, one at a time, and lets the harnesses that run it
// under faults look for what is wrong. It prints how many histories each bug took, and fails when one is not found. A red
// history counts only if the product as it is keeps the invariants under the same seed. Run it from the root of the module:
//
//	go run ./integration/planted              every bug
//	go run ./integration/planted commit       those whose name contains the text
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"taskledger/integration/bugs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

// harness looks for a bug in histories.
type harness interface {
	// build makes the program with the bug of a name, whose overlay is given. dir is empty, and the caller's own.
	build(ctx context.Context, dir, overlay string, p *planted) (hunt, error)
	// most is how many histories a bug may take.
	most() int
}

// hunt is a program with a bug in it.
type hunt interface {
	// find makes histories from a seed on, at most so many, until one shows what is wrong.
	find(ctx context.Context, seed uint64, most int) (finding, error)
}

// finding is what a hunt came to.
type finding struct {
	histories int    // made
	seed      uint64 // of the one that shows it
	noticed   string // the invariants that are broken; "" = none
}

// options are what the command line says.
type options struct {
	filter string
	kind   string // of harness; "" = both
	seed   uint64
	most   int // histories for a bug; 0 = what the harness allows
	limit  time.Duration
}

func parse(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("planted", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.kind, "harness", "", "simulated or real (default: both)")
	flags.Uint64Var(&o.seed, "seed", 1, "of the first history; the others follow")
	flags.IntVar(&o.most, "most", 0, "histories that a bug may take (default: 5,000 simulated, or 200 real ones)")
	flags.DurationVar(&o.limit, "limit", 90*time.Minute, "time for all")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.filter = strings.Join(flags.Args(), " ")
	if o.most < 0 || o.limit <= 0 || o.kind != "" && o.kind != simulated && o.kind != real {
		return o, errors.New("want a positive number of histories, a positive time, and a harness that there is")
	}
	return o, nil
}

var errNotFound = errors.New("not found")

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chosen := slices.DeleteFunc(slices.Clone(list), func(p planted) bool {
		return !strings.Contains(p.name, o.filter) || o.kind != "" && o.kind != p.harness()
	})
	harnesses, err := prepare(ctx, dir, chosen)
	if err != nil {
		return err
	}
	return search(ctx, dir, chosen, harnesses, o, out)
}

// prepare builds what the bugs are to be found with.
func prepare(ctx context.Context, dir string, chosen []planted) (map[string]harness, error) {
	all := map[string]harness{}
	for _, p := range chosen {
		if all[p.harness()] != nil {
			continue
		}
		own := filepath.Join(dir, p.harness())
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, err
		}
		var err error
		if p.faults == "" {
			all[p.harness()], err = newSimulation(ctx, own)
		} else {
			all[p.harness()], err = newReal(ctx, own)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// built is a program, or why there is none.
type built struct {
	hunt hunt
	err  error
}

// search looks for one bug after the other; the next one is built meanwhile.
func search(ctx context.Context, dir string, chosen []planted, harnesses map[string]harness, o options, out io.Writer) error {
	began := time.Now()
	programs := make(chan built)
	go func() {
		defer close(programs)
		for i := range chosen {
			p := &chosen[i]
			var b built
			b.hunt, b.err = p.build(ctx, at(dir, i), harnesses[p.harness()])
			programs <- b
		}
	}()
	fmt.Fprintf(out, "%-9s  %-60s %-9s %9s %7s %7s  %s\n", "", "bug", "harness", "histories", "seed", "seconds", "noticed by")
	var errs []error
	i := 0
	for b := range programs {
		errs = append(errs, chosen[i].try(ctx, b, harnesses[chosen[i].harness()], o, out), os.RemoveAll(at(dir, i)))
		i++
	}
	fmt.Fprintf(out, "%d bugs in %s\n", len(chosen), time.Since(began).Round(time.Second))
	return errors.Join(errs...)
}

// at is the folder of a bug.
func at(dir string, bug int) string { return filepath.Join(dir, strconv.Itoa(bug)) }

// build makes the program with the bug, in dir.
func (p *planted) build(ctx context.Context, dir string, h harness) (hunt, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	laid, program := filepath.Join(dir, "sources"), filepath.Join(dir, "program")
	if err := errors.Join(os.Mkdir(laid, 0o700), os.Mkdir(program, 0o700)); err != nil {
		return nil, err
	}
	overlay, err := bugs.Plant(laid, p.of...)
	if err != nil {
		return nil, err
	}
	return h.build(ctx, program, overlay, p)
}

// try looks for the bug and prints a row of the table.
func (p *planted) try(ctx context.Context, b built, h harness, o options, out io.Writer) error {
	began := time.Now()
	most := h.most()
	if o.most > 0 {
		most = o.most
	}
	var f finding
	err := b.err
	if err == nil {
		f, err = b.hunt.find(ctx, o.seed, most)
	}
	word, seed := "found", strconv.FormatUint(f.seed, 10)
	switch {
	case err != nil:
		word, seed = "NOT FOUND", "-"
		f.noticed, _, _ = strings.Cut(err.Error(), "\n")
	case f.noticed == "":
		word, seed, err = "NOT FOUND", "-", errNotFound
	}
	fmt.Fprintf(out, "%-9s  %-60s %-9s %9d %7s %7.0f  %s\n", word, p.name, p.harness(), f.histories, seed, time.Since(began).Seconds(), f.noticed)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}
