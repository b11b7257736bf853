package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// axe-core, MPL-2.0, is fetched for a run and is no part of the repository.
const (
	axePackage = "axe-core@4.14.1"
	axeFile    = "axe-core-4.14.1.tgz"
	axeSum     = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==" // SHA-512
	axeScript  = "package/axe.min.js"
)

// fetchAxe fetches axe-core by npm, unless AXE_CORE names the file of its package, and returns its script.
func fetchAxe(ctx context.Context, dir string) (string, error) {
	file := os.Getenv("AXE_CORE")
	if file == "" {
		file = filepath.Join(dir, axeFile)
		c := exec.CommandContext(ctx, "npm", "pack", "--silent", axePackage)
		c.Dir, c.Stderr = dir, os.Stderr
		if err := c.Run(); err != nil {
			return "", fmt.Errorf("npm pack %s: %w", axePackage, err)
		}
	}
	packed, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if sum := sha512.Sum512(packed); base64.StdEncoding.EncodeToString(sum[:]) != axeSum {
		return "", fmt.Errorf("%s is another file than %s", file, axePackage)
	}
	unzipped, err := gzip.NewReader(strings.NewReader(string(packed)))
	if err != nil {
		return "", err
	}
	for files := tar.NewReader(unzipped); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("%s has no %s", file, axeScript)
		}
		if err != nil {
			return "", err
		}
		if h.Name == axeScript {
			script, err := io.ReadAll(files)
			return string(script), err
		}
	}
}

// violation is something that axe-core finds.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// everyRule has axe-core apply all of its rules, those of good practice included, and visualRules those that see colors
// and sizes.
const (
	everyRule   = `rules: { "target-size": { enabled: true } }`
	visualRules = `runOnly: ["color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable"]`
)

// axe returns what axe-core finds in the page by some rules.
func (t *tab) axe(script, rules string) error {
	if !t.is("window.axe") {
		began := time.Now()
		if err := t.eval(script+"; true", nil); err != nil {
			return fmt.Errorf("load axe-core: %w", err)
		}
		t.spent.since("loading axe-core", began)
	}
	defer t.spent.since("running axe-core", time.Now())
	var found []violation
	err := t.eval(`axe.run(document, { resultTypes: ["violations"], `+rules+` }).then((r) => r.violations.map(
		(v) => ({ id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => ({ html: n.html.slice(0, 200), failureSummary: n.failureSummary })) })))`, &found)
	if err != nil {
		return fmt.Errorf("run axe-core: %w", err)
	}
	var all []error
	for _, v := range found {
		for _, n := range v.Nodes {
			all = append(all, fmt.Errorf("axe, %s (%s): %s\n    %s", v.ID, v.Help, n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", " ")))
		}
	}
	return errors.Join(all...)
}
