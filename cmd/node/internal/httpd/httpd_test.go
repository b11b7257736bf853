package httpd

import (
	"net"
	"testing"
)

// The usual port is given up where another program has it, and one that was asked for is not.
func TestListen_TakesAFreePortWhereNoneWasAskedFor(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := other.Addr().String()
	l, err := listen("", taken)
	if err != nil {
		t.Fatal(err)
	}
	if at := l.Addr().(*net.TCPAddr); at.String() == taken || !at.IP.IsLoopback() {
		t.Errorf("listens at %s, %s is taken", at, taken)
	}
	if got, err := listen(taken, "127.0.0.1:0"); err == nil {
		t.Errorf("%s was asked for, and is taken: listens at %s", taken, got.Addr())
	}
	for _, c := range []net.Listener{l, other} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	free, err := listen("", taken)
	if err != nil || free.Addr().String() != taken {
		t.Fatalf("%v, want the usual address %s: %v", free, taken, err)
	}
	if err := free.Close(); err != nil {
		t.Error(err)
	}
}
