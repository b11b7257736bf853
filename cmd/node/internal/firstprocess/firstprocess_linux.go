// Package firstprocess lets the program be the first process of a container: the kernel gives it the children of all
// processes that end there, and somebody has to reap them.
package firstprocess

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run does nothing unless this is the first process. Then it runs the program once more, as its child, passes every
// signal on to it, reaps whatever else ends, and returns the child's exit code when that has ended.
func Run() (code int, first bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	child, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the node as a child of the first process:", err)
		return 1, true
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	go func() {
		for s := range signals {
			if s != syscall.SIGCHLD && s != syscall.SIGURG { // Go's runtime sends the latter to itself
				_ = child.Signal(s) // one that has ended is reaped below
			}
		}
	}()
	return reap(child.Pid), true
}

// start runs this program with the same arguments, in a process group of its own: what a terminal sends to a group
// reaches the child once.
func start() (*os.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	group := &syscall.SysProcAttr{Setpgid: true}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil { // standard input is a terminal
		group.Foreground = true
	}
	return os.StartProcess(self, os.Args, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   group,
	})
}

// reap waits for all children, and returns the exit code of one of them.
func reap(child int) int {
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil:
			fmt.Fprintln(os.Stderr, "wait for the node:", err)
			return 1
		case pid != child:
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}
