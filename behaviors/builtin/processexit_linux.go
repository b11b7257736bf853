package builtin

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// awaitExit returns when the program has ended, and leaves it to reap.
func awaitExit(cmd *exec.Cmd) error {
	for {
		if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return nil // another error means that there is no such child any more, and reap says so
		}
	}
}

func reap(cmd *exec.Cmd, _ error) error { return cmd.Wait() }
