//go:build !linux

package builtin

import "os/exec"

// awaitExit returns when the program has ended. It reaps it, too: an empty group's number would have to come round
// within the instant that is left until the group has been killed and released.
func awaitExit(cmd *exec.Cmd) error { return cmd.Wait() }

// reap returns what awaitExit did.
func reap(_ *exec.Cmd, exited error) error { return exited }
