package bugs

import (
	"context"
	"fmt"
	"os/exec"
)

// Build runs a command of the go tool that builds, such as "build" or "test -c", with the sources that overlay lays over
// the tree; "" = none. The working directory is the root of the module.
func Build(ctx context.Context, overlay, command string, args ...string) error {
	args = append([]string{command, "-ldflags=-s -w", "-overlay=" + overlay}, args...)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", command, err, out)
	}
	return nil
}
