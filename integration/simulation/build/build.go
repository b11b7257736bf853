// Package build compiles the simulated world.
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

// program is the package that is compiled.
const program = "taskledger/integration/simulation/program"

// change replaces a text of a file.
type change struct{ file, old, new string }

// library lists the changes to Go's standard library, which take out everything that would make two runs of a seed
// differ. The build tag faketime has the runtime jump to the next moment when everything waits, and stand still
// otherwise.
var library = []change{
	// No thread that preempts goroutines after a time slice of real time.
	{"runtime/proc.go", `const haveSysmon = GOARCH != "wasm"`, `const haveSysmon = false`},
	// Randomness comes from the first argument: ids, orders of map keys, choices of select, addresses.
	{"runtime/rand.go", `globalRand.state.Init(*seed)`, `*seed = [32]byte{}; copy(seed[:], gostringnocopy(argv_index(argv, 1))); globalRand.state.Init(*seed)`},
	// All threads draw from the one state: which of them goes on after a wait does not matter.
	{"runtime/rand.go", `mp := getg().m`, `mp := &m0`},
	// The thread that came to rest last would go on after a jump, and which one that is depends on real time.
	{"runtime/proc.go", `mp := mget()
			if mp == nil {
				// There should always be a free M since`, `mp := mgetSpecific(&m0)
			if mp == nil {
				mp = mget()
			}
			if mp == nil {
				// There should always be a free M since`},
	// Before each jump it would look at every goroutine, to find out whether any is left. The world's always are.
	{"runtime/proc.go", `grunning := 0
	forEachG(func(gp *g) {
		if isSystemGoroutine(gp, false) {`, `grunning := 1
	forEachG(func(gp *g) {
		if true {`},
	// Stacks need not grow as often.
	{"runtime/stack.go", `stackMin = 2048`, `stackMin = 8192`},
	// A program that asks for its path takes as much memory as that is long: all that is made later lies elsewhere
	// then, which the order of what is kept by its address depends on.
	{"os/executable_procfs.go", `path, err := Readlink(procfn)`, `path, err := procfn, error(nil)`},
}

// upkeep lists the changes to this module: journals as short as those of simulated histories get snapshots, and are
// trimmed, where the store is small.
var upkeep = []change{
	{"engine/internal/shard/snapshotstore.go", `MinTail = 1 << 20`, `MinTail = 4 << 10`},
	{"engine/internal/shard/snapshotstore.go", `tailShare = 16`, `tailShare = 2048`},
}

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
