// Command mutations breaks the code in the ways that its design forbids, one at a time, and runs the one test that is
// there to notice. It fails when a test stays green, or when the code has moved away under the table.
//
// The source is never touched: broken functions are laid over the tree, beside the right ones, for one build of each
// package of tests (go help build, -overlay). A variable of the environment says which of them a run of the tests gets. Run
// it from the root of the module:
//
//	go run ./integration/mutations            every mutation
//	go run ./integration/mutations commit     those whose name contains the text
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/integration/bugs"
)

// atOnce is how many tests run side by side: they wait more than they work.
const atOnce = 4

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		os.Exit(1)
	}
}

// run checks that every test is green on the code as it is, and red on each mutation of it.
func run(ctx context.Context, filter string) error {
	dir, err := os.MkdirTemp("", "mutations-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chosen := slices.DeleteFunc(slices.Clone(bugs.Mutations), func(m bugs.Bug) bool { return !strings.Contains(m.Name, filter) })
	if len(chosen) == 0 {
		return fmt.Errorf("no mutation is named like %q", filter)
	}
	b, err := build(ctx, dir, chosen)
	if err != nil {
		return err
	}
	jobs := b.green(ctx, chosen)
	for i := range chosen {
		jobs = append(jobs, func() error { return b.try(ctx, i, &chosen[i]) })
	}
	return errors.Join(sideBySide(ctx, jobs), ctx.Err())
}

// sideBySide runs the jobs, in order, a few at a time, until ctx ends, and returns their errors.
func sideBySide(ctx context.Context, jobs []func() error) error {
	errs := make([]error, len(jobs))
	var workers errgroup.Group
	workers.SetLimit(atOnce)
	for i, job := range jobs {
		workers.Go(func() error {
			if ctx.Err() == nil {
				errs[i] = job()
			}
			return nil
		})
	}
	_ = workers.Wait()
	return errors.Join(errs...)
}

// builds are the test binaries, by package.
type builds map[string]string

// build builds the tests of the mutations with all of these inside.
func build(ctx context.Context, dir string, all []bugs.Bug) (builds, error) {
	overlay, err := lay(dir, all)
	if err != nil {
		return nil, err
	}
	b := builds{}
	for _, m := range all {
		if b[m.Pkg] != "" {
			continue
		}
		b[m.Pkg] = filepath.Join(dir, filepath.Base(m.Pkg)+".test")
		if err := bugs.Build(ctx, overlay, "test", "-c", "-vet=off", "-o", b[m.Pkg], m.Pkg); err != nil {
			return nil, err
		}
	}
	return b, nil
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

// try switches the mutation on and prints whether its test is red.
func (b builds) try(ctx context.Context, number int, m *bugs.Bug) error {
	began := time.Now()
	err := b.kill(ctx, number, m)
	verdict := "red"
	if err != nil {
		verdict, err = "NOT RED", fmt.Errorf("%s: %w", m.Name, err)
	}
	fmt.Printf("%-8s %5.1fs  %-58s %s\n", verdict, time.Since(began).Seconds(), m.Name, m.Test)
	return err
}

// green runs the tests of all mutations with none of these on.
func (b builds) green(ctx context.Context, all []bugs.Bug) (jobs []func() error) {
	tests := map[string][]string{}
	for _, m := range all {
		tests[m.Pkg] = append(tests[m.Pkg], m.Test)
	}
	for pkg, names := range tests {
		for _, group := range byDepth(names) {
			jobs = append(jobs, func() error {
				var errs []error
				out, err := b.test(ctx, pkg, group, "")
				if err != nil {
					errs = append(errs, fmt.Errorf("%s is not green as it is: %w\n%s", pkg, err, out))
				}
				for _, name := range group {
					if !strings.Contains(out, "--- PASS: "+name+" ") {
						errs = append(errs, fmt.Errorf("%s: %s did not run", pkg, name))
					}
				}
				return errors.Join(errs...)
			})
		}
	}
	return jobs
}

// byDepth groups test names by their first part and depth: a pattern of the go tool matches part by part.
func byDepth(names []string) map[string][]string {
	groups := map[string][]string{}
	for _, name := range names {
		key := ""
		if first, rest, sub := strings.Cut(name, "/"); sub {
			key = fmt.Sprint(first, strings.Count(rest, "/"))
		}
		if !slices.Contains(groups[key], name) {
			groups[key] = append(groups[key], name)
		}
	}
	return groups
}

// kill runs the mutation's test on the mutated code, and returns an error unless the test fails.
func (b builds) kill(ctx context.Context, number int, m *bugs.Bug) error {
	out, err := b.test(ctx, m.Pkg, []string{m.Test}, strconv.Itoa(number))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return fmt.Errorf("%s stays green", m.Test)
	case !strings.Contains(out, "--- FAIL: "+m.Test+" ") && !waitsForEver(out, m.Test):
		return fmt.Errorf("%s did not fail by itself: %w\n%s", m.Test, err, out)
	}
	return nil
}

// waitsForEver reports whether a test was ended because it waited for what never came.
func waitsForEver(out, test string) bool {
	_, after, timedOut := strings.Cut(out, "panic: test timed out after ")
	return timedOut && strings.Contains(after, "\t"+test+" (")
}

// test runs the named tests of a package, which must be of one depth, with a mutation; "" = none.
func (b builds) test(ctx context.Context, pkg string, names []string, mutation string) (string, error) {
	var patterns []string
	for part := range strings.Count(names[0], "/") + 1 {
		var any []string
		for _, name := range names {
			any = append(any, strings.Split(name, "/")[part])
		}
		slices.Sort(any)
		patterns = append(patterns, "^("+strings.Join(slices.Compact(any), "|")+")$")
	}
	c := exec.CommandContext(ctx, b[pkg], "-test.v", "-test.timeout=120s", "-test.run="+strings.Join(patterns, "/"))
	c.Dir, c.Env = pkg, append(os.Environ(), variable+"="+mutation)
	out, err := c.CombinedOutput()
	return string(out), err
}
