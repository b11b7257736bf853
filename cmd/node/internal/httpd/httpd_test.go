package httpd

import (
	"net"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A file of tokens that each node made for itself would differ from node to node.
func TestFlags_SayWhereTheTokensMustBeNamed(t *testing.T) {
	var o Options
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.Flags(f)
	o.Address = "127.0.0.1:0"
	if said := o.Check(false); !strings.Contains(said, "--api needs --api-tokens") {
		t.Errorf("without servers inside: %q", said)
	}
	if said := o.Check(true); said != "" {
		t.Errorf("with servers inside: %q", said)
	}
	usage := f.Lookup("api-tokens").Usage
	if !strings.Contains(usage, "with --join or --etcd it must be given") {
		t.Errorf("the help says %q", usage)
	}
}

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
