package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"taskledger/internal/testkit"
)

// binary is the tests of a package, with all mutations of the table inside.
type binary struct{ pkg, path string }

func (b *binary) build(ctx context.Context, laid string) error {
	return testkit.BuildOver(ctx, laid, "test", "-c", "-vet=off", "-o", b.path, b.pkg)
}

// judge has a court judge mutations, after it has run their tests on the code as it is.
func (b *binary) judge(ctx context.Context, c *court, all []mutation) {
	for _, names := range byDepth(all) {
		c.judge(ctx, "no mutation", b.pkg, func() (finding, error) { return finding{}, b.green(ctx, names) })
	}
	for _, m := range all {
		c.judge(ctx, m.name, m.test, func() (finding, error) { return finding{}, b.kill(ctx, &m) })
	}
}

// green runs the named tests, which are of one depth, with no mutation on. However slow the machine is, they end.
func (b *binary) green(ctx context.Context, names []string) error {
	out, err := b.test(ctx, names, "", 0)
	if err != nil {
		return fmt.Errorf("%s is not green: %w\n%s", b.pkg, cmp.Or(ctx.Err(), err), out)
	}
	for _, name := range names {
		if !strings.Contains(out, "--- PASS: "+name+" ") {
			return fmt.Errorf("%s did not run", name)
		}
	}
	return nil
}

// byDepth groups the tests of mutations by their first part and depth: a pattern of the go tool matches part by part.
func byDepth(all []mutation) map[string][]string {
	groups := map[string][]string{}
	for _, m := range all {
		key := ""
		if first, rest, sub := strings.Cut(m.test, "/"); sub {
			key = fmt.Sprint(first, strings.Count(rest, "/"))
		}
		if !slices.Contains(groups[key], m.test) {
			groups[key] = append(groups[key], m.test)
		}
	}
	return groups
}

// kill runs the mutation's test on the mutated code, and returns an error unless the test fails.
func (b *binary) kill(ctx context.Context, m *mutation) error {
	out, err := b.test(ctx, []string{m.test}, m.name, time.Minute)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return errors.New("the test stays green")
	case !strings.Contains(out, "--- FAIL: "+m.test+" ") && !waitsForEver(out, m.test) && !panics(out, m.test):
		return fmt.Errorf("the test did not fail by itself: %w\n%s", err, out)
	}
	return nil
}

// waitsForEver reports whether a test was ended because it, or a part of it, waited for what never came. While parts
// run side by side they are listed alone.
func waitsForEver(out, test string) bool {
	_, after, timedOut := strings.Cut(out, "panic: test timed out after ")
	return timedOut && (strings.Contains(after, "\t"+test+" (") || strings.Contains(after, "\t"+test+"/"))
}

// panics reports whether the program panicked while a test ran, which ends it before it is told what failed.
func panics(out, test string) bool {
	before, after, panicked := strings.Cut(out, "\npanic: ")
	return panicked && strings.Contains(before+"\n", "=== RUN   "+test+"\n") &&
		!strings.HasPrefix(after, "test timed out after ")
}

// test runs the named tests, which must be of one depth, with the mutation of a name, "" = none, and ends them after
// limit, 0 = never.
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
