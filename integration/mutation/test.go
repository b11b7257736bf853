package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// testsAtOnce is the number of tests that run side by side: they wait more than they work.
const testsAtOnce = 12

// test checks that every test is green on the code as it is, and red on each mutation of it. While the tests of a
// package run, those of the next are built.
func test(ctx context.Context, args []string, out io.Writer) error {
	text := strings.Join(args, " ")
	chosen := slices.DeleteFunc(slices.Clone(mutations), func(m mutation) bool { return !strings.Contains(m.name, text) })
	if len(chosen) == 0 {
		return fmt.Errorf("no mutation is named like %q", text)
	}
	tests, err := packagesOfTests()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	laid, err := lay(dir)
	if err != nil {
		return err
	}
	c := &court{log: log.New(out, "", 0), places: make(chan struct{}, testsAtOnce)}
	for len(chosen) > 0 && err == nil {
		pkg := tests[chosen[0].function()]
		elsewhere := func(m mutation) bool { return tests[m.function()] != pkg }
		b := binary{pkg, filepath.Join(dir, strings.ReplaceAll(pkg, "/", "-")+".test")}
		if err = b.build(ctx, laid); err == nil {
			b.judge(ctx, c, slices.DeleteFunc(slices.Clone(chosen), elsewhere))
		}
		chosen = slices.DeleteFunc(chosen, func(m mutation) bool { return !elsewhere(m) })
	}
	return errors.Join(err, c.close(ctx))
}

var declaresTest = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// packagesOfTests returns the package of each test of the module. A name that two packages have is of none.
func packagesOfTests() (map[string]string, error) {
	packages := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err // if any
		}
		text, err := os.ReadFile(path)
		for _, found := range declaresTest.FindAllSubmatch(text, -1) {
			name, pkg := string(found[1]), "./"+filepath.ToSlash(filepath.Dir(path))
			if other, twice := packages[name]; twice && other != pkg {
				pkg = ""
			}
			packages[name] = pkg
		}
		return err
	})
	return packages, err
}
