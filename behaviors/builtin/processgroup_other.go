//go:build !unix

package builtin

import "os/exec"

// Without process groups only the program itself can be ended, and only at once. An error means that it has ended.
func ownGroup(*exec.Cmd) {}

func terminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
