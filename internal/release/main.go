// Command release builds the binaries of a release into dist, with their checksums and a bill of materials (SPDX 2.3):
//
//	go run ./internal/release [SYSTEM/PROCESSOR...]
//
// The same commit gives the same bytes in any folder, on any machine with the Go that go.mod names. It is run from the
// root of the module, in a clone without changes.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"taskledger/internal/version"
)

const dist = "dist"

// targets are the systems and processors that binaries are built for, unless some are chosen.
var targets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, chosen []string) error {
	if len(chosen) == 0 {
		chosen = targets
	}
	changed, err := git(ctx, "status", "--porcelain")
	if err == nil && changed != "" {
		err = fmt.Errorf("a release is of a commit: commit or stash\n%s", changed)
	}
	if err != nil {
		return err
	}
	commit, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	at, err := git(ctx, "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ")
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dist), os.MkdirAll(dist, 0o755)); err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, target := range chosen {
		path, err := build(ctx, target, commit)
		if err != nil {
			return err
		}
		bill, err := billOf(path, at)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path+".spdx.json", bill, 0o644); err != nil {
			return err
		}
		for _, file := range []string{path, path + ".spdx.json"} {
			sum, err := sumOf(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(&sums, "%s  %s\n", sum, filepath.Base(file))
		}
	}
	fmt.Print(sums.String())
	return os.WriteFile(filepath.Join(dist, "SHA256SUMS"), sums.Bytes(), 0o644)
}

// git returns what git prints, in UTC.
func git(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	c.Env = append(os.Environ(), "TZ=UTC")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build returns the path of the binary for a target.
func build(ctx context.Context, target, commit string) (path string, err error) {
	system, processor, _ := strings.Cut(target, "/")
	path = filepath.Join(dist, fmt.Sprintf("taskledger-%s-%s-%s", version.Version, system, processor))
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -X taskledger/internal/version.commit="+commit, "-o", path, "./cmd/node")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+processor)
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("build for %s: %w", target, err)
	}
	return path, nil
}

func sumOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// The forms of SPDX 2.3, as far as a bill has them.
type (
	document struct {
		Version   string         `json:"spdxVersion"`
		License   string         `json:"dataLicense"`
		ID        string         `json:"SPDXID"`
		Name      string         `json:"name"`
		Namespace string         `json:"documentNamespace"`
		Creation  creation       `json:"creationInfo"`
		Packages  []component    `json:"packages"`
		Relations []relationship `json:"relationships"`
		Described []string       `json:"documentDescribes"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	component struct {
		ID        string      `json:"SPDXID"`
		Name      string      `json:"name"`
		Version   string      `json:"versionInfo"`
		Location  string      `json:"downloadLocation"`
		Analyzed  bool        `json:"filesAnalyzed"`
		Reference []reference `json:"externalRefs,omitempty"`
	}
	reference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

// billOf lists the modules that a binary is made of, as it tells them itself.
func billOf(path, created string) ([]byte, error) {
	is, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read what %s is made of: %w", path, err)
	}
	sum, err := sumOf(path)
	if err != nil {
		return nil, err
	}
	const program = "SPDXRef-taskledger"
	d := document{
		Version:   "SPDX-2.3",
		License:   "CC0-1.0",
		ID:        "SPDXRef-DOCUMENT",
		Name:      filepath.Base(path),
		Namespace: "urn:sha256:" + sum,
		Creation:  creation{created, []string{"Tool: taskledger-release"}},
		Packages:  []component{{ID: program, Name: "taskledger", Version: version.Version, Location: "NOASSERTION"}},
		Described: []string{program},
	}
	add := func(name, of, locator string) {
		id := fmt.Sprintf("SPDXRef-module-%d", len(d.Packages))
		d.Packages = append(d.Packages, component{
			ID:        id,
			Name:      name,
			Version:   of,
			Location:  "NOASSERTION",
			Reference: []reference{{"PACKAGE-MANAGER", "purl", locator}},
		})
		d.Relations = append(d.Relations, relationship{program, "DEPENDS_ON", id})
	}
	add("go", is.GoVersion, "pkg:golang/stdlib@"+strings.TrimPrefix(is.GoVersion, "go"))
	for _, m := range is.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	return json.MarshalIndent(d, "", "  ")
}
