package cluster

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace with nothing but a loopback device, in which the kernel can lose packets. Unlike a
// proxy it tells nobody: no end of a connection sees it closed, TCP sends again, and new connections are not answered.
// So it found that a plan whose letter was posted twice left the letter in etcd, which no proxy has shown
// (TestPlan_LeavesNoMailBehind).
//
// It lives until Close and as long as a process or a socket is in it. Its methods may be called concurrently. A nil
// *Namespace stands for the one that this process is in.
type Namespace struct{ fd int }

// threadNamespace names the namespace of the thread that opens it.
const threadNamespace = "/proc/thread-self/ns/net"

// NewNamespace makes a namespace. That takes CAP_SYS_ADMIN.
func NewNamespace() (*Namespace, error) {
	n := &Namespace{}
	unshare := func() error { return unix.Unshare(unix.CLONE_NEWNET) }
	err := elsewhere(unshare, func() (err error) {
		if err := loopbackUp(); err != nil {
			return err
		}
		n.fd, err = unix.Open(threadNamespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	return n, nil
}

// Do runs f on a thread that is in the namespace: a socket that f opens, and a process that it starts, are in it for good.
// What f leaves to other goroutines is not.
func (n *Namespace) Do(f func() error) error {
	if n == nil {
		return f()
	}
	return elsewhere(func() error { return unix.Setns(n.fd, unix.CLONE_NEWNET) }, f)
}

// Close gives the namespace up.
func (n *Namespace) Close() error {
	if n == nil {
		return nil
	}
	return unix.Close(n.fd)
}

// elsewhere runs f on a thread that enter takes to another namespace.
func elsewhere(enter, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- visit(enter, f) }()
	return <-done
}

// visit goes elsewhere and comes back. A thread that cannot stays locked: it ends with its goroutine.
func visit(enter, f func() error) error {
	runtime.LockOSThread()
	home, err := unix.Open(threadNamespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(home)
		err = enter()
	}
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = f()
	if lost := unix.Setns(home, unix.CLONE_NEWNET); lost != nil {
		return errors.Join(err, lost)
	}
	runtime.UnlockOSThread()
	return err
}

// loopbackUp gives the namespace of the thread 127.0.0.1.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo)
}
