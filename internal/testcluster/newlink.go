package testcluster

import (
	"net"
	"testing"
)

// NewLink makes a link that leads nowhere and lives as long as the test.
func NewLink(t testing.TB) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	l := NewLinkOn(listener)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}
