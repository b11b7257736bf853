//go:build unix

package testcluster

import (
	"syscall"
	"testing"
)

// reservePort picks a free loopback port and keeps the system from giving it to anybody who asks for any port, until
// the test ends: a server that is started again finds it free. Its socket is bound and does not listen, so connections
// are refused while no server listens there.
func reservePort(t testing.TB) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatalf("reserve a port: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	syscall.CloseOnExec(fd)
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatalf("reserve a port: %v", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatalf("reserve a port: %v", err)
	}
	address, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatalf("reserve a port: %v", err)
	}
	return address.(*syscall.SockaddrInet4).Port
}
