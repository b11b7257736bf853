// Package build compiles the simulated world to WebAssembly.
package build

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is the package that is compiled.
const program = "taskledger/integration/simulation/guest"

//go:embed stub/*.go.txt
var stubs embed.FS

// stub takes the place of a file that does not compile for the target. No code path of the world calls it.
type stub struct{ module, file, text string }

var stubbed = []stub{
	{"github.com/coreos/go-systemd/v22", "journal/journal_unix.go", "stub/journal.go.txt"},
	{"go.etcd.io/etcd/client/pkg/v3", "fileutil/lock_flock.go", "stub/flock.go.txt"},
}

// Build compiles the world of the module that the working directory is in and returns the path of the program, which is
// in dir. overlay names a file as go build takes it by -overlay, which lays other sources over the tree; "" = none.
// dir must be empty and the caller's own. It takes a minute when nothing is cached.
func Build(ctx context.Context, dir, overlay string) (string, error) {
	modfile, err := writeModfile(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("build the simulated world: %w", err)
	}
	out := filepath.Join(dir, "world.wasm")
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-modfile=" + modfile, "-o", out}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	if _, err := goTool(ctx, append(args, program)...); err != nil {
		return "", fmt.Errorf("build the simulated world: %w", err)
	}
	return out, nil
}

// goTool runs the go command for the target and returns what it prints.
func goTool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	var problem bytes.Buffer
	cmd.Stderr = &problem
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, problem.Bytes())
	}
	return strings.TrimSpace(string(text)), nil
}

// writeModfile writes a go.mod, and its go.sum, that replace the stubbed modules by copies in dir. Files of the module
// cache themselves cannot be overlaid.
func writeModfile(ctx context.Context, dir string) (string, error) {
	gomod, err := goTool(ctx, "env", "GOMOD")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(gomod)
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile(strings.TrimSuffix(gomod, ".mod") + ".sum")
	if err != nil {
		return "", err
	}
	for i, s := range stubbed {
		copied := filepath.Join(dir, fmt.Sprintf("module%d", i))
		if err := s.copyModule(ctx, copied); err != nil {
			return "", err
		}
		text = fmt.Appendf(text, "\nreplace %s => %s\n", s.module, copied)
	}
	modfile := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(modfile, text, 0o600); err != nil {
		return "", err
	}
	return modfile, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600)
}

// copyModule copies the module to dir, with the stub in place.
func (s *stub) copyModule(ctx context.Context, dir string) error {
	from, err := goTool(ctx, "list", "-m", "-f", "{{.Dir}}", s.module)
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return err
	}
	text, err := stubs.ReadFile(s.text)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, s.file), text, 0o600)
}
