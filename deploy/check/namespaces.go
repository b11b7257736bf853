package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The first argument tells what the program is to be, where it has started itself.
const (
	apart = "apart" // deployed, in a network of its own
	enter = "enter" // another program, as a container has it
)

// self is this program, whoever asks.
const self = "/proc/self/exe"

// runApart runs deployed in a network that nothing else has: processes listen on all addresses there, as the files say,
// and nobody reaches them.
func runApart(ctx context.Context, dir string) error {
	if os.Geteuid() != 0 {
		return errors.New("must run as root, to give processes a network, a root and a user of their own")
	}
	if err := build(ctx, dir); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, self, apart, dir)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // it ends what it has started
	return c.Run()
}

// raiseLoopback starts the one device that a new network has.
func raiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	device, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	device.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, device)
}

// entering are the arguments by which the program becomes that of a process, as the first of its namespaces, with a
// root, a /proc and a user of its own.
func entering(p *process, program string) []string {
	return append([]string{self, enter, p.root, strconv.Itoa(p.user), strconv.Itoa(p.group), p.dir, program}, p.args...)
}

// become follows what entering says; it returns only with an error.
func become(args []string) error {
	root, dir, program := args[0], args[3], args[4]
	user, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	group, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	proc := filepath.Join(root, "proc")
	for _, step := range []struct {
		does string
		do   func() error
	}{
		{"keep mounts to itself", func() error { return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") }},
		{"make " + proc, func() error { return os.MkdirAll(proc, 0o755) }},
		{"mount " + proc, func() error { return syscall.Mount("proc", proc, "proc", 0, "") }},
		{"change the root to " + root, func() error { return errors.Join(syscall.Chroot(root), syscall.Chdir(dir)) }},
		{"become the user", func() error {
			return errors.Join(syscall.Setgroups([]int{group}), syscall.Setgid(group), syscall.Setuid(user))
		}},
		{"run " + program, func() error { return syscall.Exec(program, args[5:], os.Environ()) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.does, err)
		}
	}
	return nil
}
