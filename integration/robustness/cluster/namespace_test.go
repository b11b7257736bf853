package cluster_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"taskledger/integration/robustness/cluster"
)

const (
	// moment is long enough for what may arrive, and short enough to wait for what may not.
	moment = 200 * time.Millisecond
	// again bounds the time that TCP takes to send again what was lost for a few moments.
	again = 30 * time.Second
)

// possible reports whether there can be namespaces here, and asserts that Cannot tells why not.
func possible(t *testing.T) bool {
	t.Helper()
	n, err := cluster.NewNamespace()
	if err == nil {
		_, failed := n.Lose([]uint16{1}, nil, func() {})
		err = errors.Join(failed, n.Close())
	}
	cannot := cluster.CannotLosePackets()
	if (err == nil) != (cannot == nil) || cannot != nil && cannot.Error() == "" {
		t.Errorf("Cannot: %v, but: %v", cannot, err)
	}
	return err == nil
}

// open returns a namespace, a port in it, and the two ends of a connection to the port.
func open(t *testing.T) (n *cluster.Namespace, port uint16, near, far net.Conn) {
	t.Helper()
	n, err := cluster.NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	if err := n.Do(func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort(listener.Addr().String())
	if near, err = dial(n, address.Port()); err != nil {
		t.Fatal(err)
	}
	if far, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []io.Closer{near, far, listener, n} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return n, address.Port(), near, far
}

func dial(n *cluster.Namespace, port uint16) (c net.Conn, err error) {
	err = n.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String(), moment)
		return err
	})
	return c, err
}

func send(t *testing.T, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Error(err)
	}
}

// arrives asserts whether the text arrives in time.
func arrives(t *testing.T, from net.Conn, text string, within time.Duration, want bool) {
	t.Helper()
	if err := from.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Error(err)
	}
	got := make([]byte, len(text))
	_, err := io.ReadFull(from, got)
	if arrived := err == nil && string(got) == text; arrived != want {
		t.Errorf("%q arrives: %t, want %t (%q, %v)", text, arrived, want, got, err)
	}
}

func TestNamespace_LosesPacketsOneWayOrBothUntilTheEnd(t *testing.T) {
	if !possible(t) {
		return
	}
	for _, c := range []struct {
		name        string
		forth, back bool // is lost
	}{{"forth", true, false}, {"back", false, true}, {"both", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			n, port, near, far := open(t)
			var to, from []uint16
			if c.forth {
				to = []uint16{port}
			}
			if c.back {
				from = []uint16{port}
			}
			lost, err := n.Lose(to, from, func() {
				send(t, near, "forth")
				send(t, far, "back")
				arrives(t, far, "forth", moment, !c.forth)
				arrives(t, near, "back", moment, !c.back)
			})
			if err != nil || (lost.To > 0) != c.forth || (lost.From > 0) != c.back {
				t.Errorf("lost are %+v, %v", lost, err)
			}
			if c.forth {
				arrives(t, far, "forth", again, true)
			}
			if c.back {
				arrives(t, near, "back", again, true)
			}
		})
	}
}

func TestNamespace_AnswersNoConnectionMeanwhile(t *testing.T) {
	if !possible(t) {
		return
	}
	n, port, _, _ := open(t)
	lost, err := n.Lose([]uint16{port}, nil, func() {
		c, err := dial(n, port)
		if err == nil {
			_ = c.Close()
		}
		if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("dial: %v, want a time-out", err)
		}
	})
	if err != nil || lost.To == 0 {
		t.Errorf("lost are %+v, %v", lost, err)
	}
	c, err := dial(n, port)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestNamespace_LosesNothingElse(t *testing.T) {
	if !possible(t) {
		return
	}
	n, port, near, far := open(t)
	lost, err := n.Lose([]uint16{port + 1}, []uint16{port - 1}, func() {
		send(t, near, "forth")
		arrives(t, far, "forth", moment, true)
	})
	if err != nil || lost != (cluster.LostPackets{}) {
		t.Errorf("lost are %+v, %v", lost, err)
	}
}

func TestNamespace_IsOutOfReach(t *testing.T) {
	if !possible(t) {
		return
	}
	_, port, _, _ := open(t)
	if c, err := dial(nil, port); err == nil {
		t.Errorf("a listener in the namespace is reached from outside: %s", c.RemoteAddr())
	}
}
