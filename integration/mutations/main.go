// Command mutations breaks the code in the ways that its design forbids, one at a time, and runs the one test that is
// there to notice. It fails when a test stays green, or when the code has moved away under the table.
//
// The source is never touched: broken functions are laid over the tree, beside the right ones, for one build of each
// package of tests (go help build, -overlay). A variable of the environment says which of them a run of the tests gets. Run
// it from the root of the module:
//
//	go run ./integration/mutations           every mutation
//	go run ./integration/mutations commit    those whose name contains the text
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"taskledger/integration/bugs"
)

// atOnce is the number of tests that run side by side: they wait more than they work.
const atOnce = 12

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		os.Exit(1)
	}
}

// mutation is one of the table, and its place there. All of the table are laid over the tree, whichever are chosen: so the
// go command's cache has what it has compiled once.
type mutation struct {
	bugs.Bug
	number int
}

// choose returns the mutations whose name contains a text.
func choose(text string) (chosen []mutation, err error) {
	for i, m := range bugs.Mutations {
		if strings.Contains(m.Name, text) {
			chosen = append(chosen, mutation{m, i})
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutation is named like %q", text)
	}
	return chosen, nil
}

// run checks that every test is green on the code as it is, and red on each mutation of it. While the tests of a package
// run, those of the next are built.
func run(ctx context.Context, args []string, out io.Writer) error {
	chosen, err := choose(strings.Join(args, " "))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d mutations\n", len(chosen), len(bugs.Mutations))
	dir, err := os.MkdirTemp("", "mutations-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := lay(dir, bugs.Mutations)
	if err != nil {
		return err
	}
	tests := pool{places: make(chan struct{}, atOnce)}
	for _, pkg := range packages(chosen) {
		b := binary{pkg, filepath.Join(dir, strings.ReplaceAll(pkg, "/", "-")+".test")}
		if err = b.build(ctx, overlay); err != nil {
			break
		}
		of := slices.DeleteFunc(slices.Clone(chosen), func(m mutation) bool { return m.Pkg != pkg })
		for _, names := range byDepth(of) {
			tests.start(ctx, func() error { return b.green(ctx, names) })
		}
		for _, m := range of {
			tests.start(ctx, func() error { return b.try(ctx, &m, out) })
		}
	}
	return errors.Join(err, tests.wait(), ctx.Err())
}

// packages returns the packages of the tests, in the order of the table.
func packages(all []mutation) (names []string) {
	for _, m := range all {
		if !slices.Contains(names, m.Pkg) {
			names = append(names, m.Pkg)
		}
	}
	return names
}

// pool runs jobs side by side, as many at a time as it has places.
type pool struct {
	places  chan struct{}
	running sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// start runs a job as soon as there is a place, unless ctx ends before.
func (p *pool) start(ctx context.Context, job func() error) {
	p.running.Go(func() {
		p.places <- struct{}{}
		defer func() { <-p.places }()
		if ctx.Err() != nil {
			return
		}
		if err := job(); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs, err)
		}
	})
}

// wait waits for all jobs and returns their errors.
func (p *pool) wait() error {
	p.running.Wait()
	return errors.Join(p.errs...)
}

// lay writes the files with all mutations, and the description of the overlay, whose path it returns.
func lay(dir string, all []bugs.Bug) (overlay string, err error) {
	texts, err := mergeAll(all, func(file string) (string, error) {
		text, err := os.ReadFile(file)
		return string(text), err
	})
	if err != nil {
		return "", err
	}
	return bugs.Lay(dir, texts)
}
