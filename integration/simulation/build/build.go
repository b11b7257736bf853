// Package build compiles the program that makes a simulated history, and runs it: each history in a process of its own,
// whose clock and randomness come from a seed. The process runs one goroutine at a time and never preempts it, so a
// seed determines everything: the order of goroutines, of map keys and of select, every drawn id and every moment.
package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is the package that is compiled, which makes a history where it has the build tag faketime.
const program = "taskledger/integration/simulation"

// Build compiles the world of the module that the working directory is in and returns the path of the program, which is
// in dir. overlay names a file as go build takes it by -overlay, which lays other sources over the tree; "" = none.
// dir must be empty and the caller's own. It takes a minute when nothing is cached.
func Build(ctx context.Context, dir, overlay string) (string, error) {
	merged, err := writeOverlay(ctx, dir, overlay)
	if err != nil {
		return "", fmt.Errorf("build the simulated world: %w", err)
	}
	out := filepath.Join(dir, "world")
	if _, err := goTool(ctx, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-tags=faketime", "-overlay="+merged, "-o", out, program); err != nil {
		return "", fmt.Errorf("build the simulated world: %w", err)
	}
	return out, nil
}

// goTool runs the go command and returns what it prints. Without cgo: time stands still in its programs.
func goTool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	var problem bytes.Buffer
	cmd.Stderr = &problem
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, problem.Bytes())
	}
	return strings.TrimSpace(string(text)), nil
}

// writeOverlay writes, to dir, the overlay with the changes of the runtime added, and returns its path.
func writeOverlay(ctx context.Context, dir, overlay string) (string, error) {
	laid := struct{ Replace map[string]string }{map[string]string{}}
	if overlay != "" {
		text, err := os.ReadFile(overlay)
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(text, &laid); err != nil {
			return "", fmt.Errorf("overlay %s: %w", overlay, err)
		}
	}
	version, err := goTool(ctx, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	if !isPatched(version) {
		return "", fmt.Errorf("the changes to Go's runtime are made for %s, and this is %s: see package build of the simulation", patched, version)
	}
	root, err := goTool(ctx, "env", "GOROOT")
	if err != nil {
		return "", err
	}
	module, err := goTool(ctx, "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", err
	}
	for in, changes := range map[string][]change{filepath.Join(root, "src"): library, module: upkeep} {
		for _, c := range changes {
			from, to := filepath.Join(in, c.file), filepath.Join(dir, strings.ReplaceAll(c.file, "/", "-"))
			if err := c.apply(cmp.Or(laid.Replace[from], from), to); err != nil {
				return "", err
			}
			laid.Replace[from] = to
		}
	}
	text, err := json.Marshal(laid)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// apply writes the changed file.
func (c *change) apply(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(c.old)) {
		return fmt.Errorf("%s has no %q: adapt the simulation", from, c.old)
	}
	return os.WriteFile(to, bytes.ReplaceAll(text, []byte(c.old), []byte(c.new)), 0o600)
}
