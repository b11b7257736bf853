package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"taskledger/integration/bugs"
)

// binary is the tests of a package, with all mutations of the table inside.
type binary struct{ pkg, path string }

func (b *binary) build(ctx context.Context, overlay string) error {
	return bugs.Build(ctx, overlay, "test", "-c", "-vet=off", "-o", b.path, b.pkg)
}

// try switches the mutation on and prints whether its test is red.
func (b *binary) try(ctx context.Context, m *mutation, out io.Writer) error {
	began := time.Now()
	err := b.kill(ctx, m)
	verdict := "red"
	if err != nil {
		verdict, err = "NOT RED", fmt.Errorf("%s: %w", m.Name, err)
	}
	fmt.Fprintf(out, "%-8s %5.1fs  %-58s %s\n", verdict, time.Since(began).Seconds(), m.Name, m.Test)
	return err
}

// green runs the named tests, which are of one depth, with no mutation on. However slow the machine is, they end.
func (b *binary) green(ctx context.Context, names []string) error {
	var errs []error
	out, err := b.test(ctx, names, "", 0)
	if err != nil {
		errs = append(errs, fmt.Errorf("%s is not green as it is: %w\n%s", b.pkg, err, out))
	}
	for _, name := range names {
		if !strings.Contains(out, "--- PASS: "+name+" ") {
			errs = append(errs, fmt.Errorf("%s: %s did not run", b.pkg, name))
		}
	}
	return errors.Join(errs...)
}

// byDepth groups the tests of mutations by their first part and depth: a pattern of the go tool matches part by part.
func byDepth(all []mutation) map[string][]string {
	groups := map[string][]string{}
	for _, m := range all {
		key, name := "", m.Test
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
func (b *binary) kill(ctx context.Context, m *mutation) error {
	out, err := b.test(ctx, []string{m.Test}, strconv.Itoa(m.number), time.Minute)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return fmt.Errorf("%s stays green", m.Test)
	case !strings.Contains(out, "--- FAIL: "+m.Test+" ") && !waitsForEver(out, m.Test) && !panics(out, m.Test):
		return fmt.Errorf("%s did not fail by itself: %w\n%s", m.Test, err, out)
	}
	return nil
}

// waitsForEver reports whether a test was ended because it, or a part of it, waited for what never came. While parts run
// side by side they are listed alone.
func waitsForEver(out, test string) bool {
	_, after, timedOut := strings.Cut(out, "panic: test timed out after ")
	return timedOut && (strings.Contains(after, "\t"+test+" (") || strings.Contains(after, "\t"+test+"/"))
}

// panics reports whether the program panicked while a test ran, which ends it before it is told what failed.
func panics(out, test string) bool {
	before, after, panicked := strings.Cut(out, "\npanic: ")
	return panicked && strings.Contains(before+"\n", "=== RUN   "+test+"\n") && !strings.HasPrefix(after, "test timed out after ")
}

// test runs the named tests, which must be of one depth, with a mutation, "" = none, and ends them after limit,
// 0 = never.
func (b *binary) test(ctx context.Context, names []string, mutation string, limit time.Duration) (string, error) {
	var patterns []string
	for part := range strings.Count(names[0], "/") + 1 {
		var any []string
		for _, name := range names {
			any = append(any, strings.Split(name, "/")[part])
		}
		slices.Sort(any)
		patterns = append(patterns, "^("+strings.Join(slices.Compact(any), "|")+")$")
	}
	only, within := "-test.run="+strings.Join(patterns, "/"), "-test.timeout="+limit.String()
	c := exec.CommandContext(ctx, b.path, "-test.v", within, only)
	c.Dir, c.Env = b.pkg, append(os.Environ(), variable+"="+mutation)
	out, err := c.CombinedOutput()
	return string(out), err
}
