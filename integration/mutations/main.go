// Command mutations breaks the code in the ways that its design forbids, one at a time, and runs the one test that is
// there to notice. It fails when a test stays green, or when the code has moved away under the table.
//
// The source is never touched: each broken file is laid over the tree for one build (go help build, -overlay). Run it
// from the root of the module:
//
//	go run ./integration/mutations            every mutation
//	go run ./integration/mutations commit     those whose name contains the text
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// atOnce is how many builds and tests run side by side: while one test waits, another is built.
const atOnce = 2

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
	chosen := slices.DeleteFunc(slices.Clone(mutations), func(m mutation) bool { return !strings.Contains(m.name, filter) })
	jobs := []func() error{func() error { return green(ctx, chosen) }}
	for _, m := range chosen {
		jobs = append(jobs, func() error { return m.try(ctx, dir) })
	}
	return errors.Join(sideBySide(ctx, jobs), ctx.Err())
}

// sideBySide runs the jobs, in order, a few at a time, until ctx ends, and returns their errors.
func sideBySide(ctx context.Context, jobs []func() error) error {
	errs := make([]error, len(jobs))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(jobs) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				errs[i] = jobs[i]()
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// try makes the mutation and prints whether its test is red.
func (m *mutation) try(ctx context.Context, dir string) error {
	began := time.Now()
	err := m.kill(ctx, dir)
	verdict := "red"
	if err != nil {
		verdict, err = "NOT RED", fmt.Errorf("%s: %w", m.name, err)
	}
	fmt.Printf("%-8s %5.1fs  %-58s %s\n", verdict, time.Since(began).Seconds(), m.name, m.test)
	return err
}

// green runs the tests of all mutations on the code as it is.
func green(ctx context.Context, all []mutation) error {
	tests := map[string][]string{}
	for _, m := range all {
		tests[m.pkg] = append(tests[m.pkg], m.test)
	}
	var errs []error
	for pkg, names := range tests {
		for _, group := range byDepth(names) {
			out, err := goTest(ctx, pkg, group)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s is not green as it is: %w\n%s", pkg, err, out))
			}
			for _, name := range group {
				if !strings.Contains(out, "--- PASS: "+name+" ") {
					errs = append(errs, fmt.Errorf("%s: %s did not run", pkg, name))
				}
			}
		}
	}
	return errors.Join(errs...)
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
func (m *mutation) kill(ctx context.Context, dir string) error {
	dir, err := os.MkdirTemp(dir, "")
	if err != nil {
		return err
	}
	overlay, err := m.lay(dir)
	if err != nil {
		return err
	}
	out, err := goTest(ctx, m.pkg, []string{m.test}, "-overlay="+overlay)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return fmt.Errorf("%s stays green", m.test)
	case !strings.Contains(out, "--- FAIL: "+m.test+" "):
		return fmt.Errorf("%s did not fail by itself: %w\n%s", m.test, err, out)
	}
	return nil
}

// lay writes the mutated file and the description of the overlay into an empty directory, and returns the latter's path.
func (m *mutation) lay(dir string) (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	mutated := string(text)
	for _, e := range m.edits {
		if n := strings.Count(mutated, e.old); n != 1 {
			return "", fmt.Errorf("%s has %d places that read %q, want one", m.file, n, e.old)
		}
		mutated = strings.Replace(mutated, e.old, e.new, 1)
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	replacement, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	description, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(replacement, []byte(mutated), 0o600), os.WriteFile(overlay, description, 0o600))
}

// goTest runs the named tests of a package, which must be of one depth.
func goTest(ctx context.Context, pkg string, names []string, flags ...string) (string, error) {
	var patterns []string
	for part := range strings.Count(names[0], "/") + 1 {
		var any []string
		for _, name := range names {
			any = append(any, strings.Split(name, "/")[part])
		}
		slices.Sort(any)
		patterns = append(patterns, "^("+strings.Join(slices.Compact(any), "|")+")$")
	}
	args := append([]string{"test", "-v", "-vet=off", "-ldflags=-s -w", "-count=1", "-timeout=60s", "-run=" + strings.Join(patterns, "/")}, flags...)
	out, err := exec.CommandContext(ctx, "go", append(args, pkg)...).CombinedOutput()
	return string(out), err
}
