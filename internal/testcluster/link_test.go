package testcluster_test

import (
	"io"
	"net"
	"testing"
	"time"

	"taskledger/internal/testcluster"
)

// moment is long enough for bytes that may pass, and short enough to wait for those that may not.
const moment = 200 * time.Millisecond

// open returns the two ends of a connection through a link.
func open(t *testing.T) (l *testcluster.Link, near, far net.Conn) {
	t.Helper()
	l, listener := testcluster.NewLinkOn(listen(t)), listen(t)
	t.Cleanup(func() {
		_ = listener.Close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	l.Lead(listener.Addr().String())
	near, far = connect(t, l, listener)
	send(t, near, "hello") // the far end may be open before the link knows of it
	passes(t, far, "hello", true)
	return l, near, far
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func connect(t *testing.T, l *testcluster.Link, listener net.Listener) (near, far net.Conn) {
	t.Helper()
	near, err := net.Dial("tcp", l.Address)
	if err != nil {
		t.Fatal(err)
	}
	if far, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}

func send(t *testing.T, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
}

// passes asserts whether the text arrives within a moment.
func passes(t *testing.T, from net.Conn, text string, want bool) {
	t.Helper()
	if err := from.SetReadDeadline(time.Now().Add(moment)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	_, err := io.ReadFull(from, got)
	if arrived := err == nil && string(got) == text; arrived != want {
		t.Errorf("%q arrives: %t, want %t (%q, %v)", text, arrived, want, got, err)
	}
}

func TestLink_HoldsOneWayOnly(t *testing.T) {
	for way, name := range []string{"forth", "back"} {
		t.Run(name, func(t *testing.T) {
			l, near, far := open(t)
			from, to := near, far
			if testcluster.Direction(way) == testcluster.Back {
				from, to = far, near
			}
			l.Set(testcluster.Direction(way), testcluster.Condition{Hold: true})
			send(t, from, "held")
			send(t, to, "free")
			passes(t, from, "free", true)
			passes(t, to, "held", false)
			if l.Affected() != 4 {
				t.Errorf("%d bytes affected, want 4", l.Affected())
			}
			l.Clear()
			passes(t, to, "held", true)
		})
	}
}

func TestLink_HoldsOnePeerOnly(t *testing.T) {
	l, near, far := open(t)
	l.SetPeer("a1", testcluster.Forth, testcluster.Condition{Hold: true})
	send(t, near, "X-Server-From: b2\r\n")
	passes(t, far, "X-Server-From: b2\r\n", true)
	send(t, near, "X-Server-From: a1\r\n")
	passes(t, far, "X-Server-From: a1\r\n", false)
}

func TestLink_LosesWithoutTelling(t *testing.T) {
	l, near, far := open(t)
	l.Lose()
	send(t, near, "gone")
	passes(t, far, "gone", false)
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	send(t, near, "into nothing")
	if err := near.SetReadDeadline(time.Now().Add(moment)); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("the near end hears that the far end has gone: %v", err)
	}
	l.Mend()
	if err := near.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open after it was mended")
	}
}

func TestLink_DelaysAndThrottles(t *testing.T) {
	for name, c := range map[string]testcluster.Condition{"latency": {Latency: moment * 3 / 2}, "rate": {Rate: 13}} {
		t.Run(name, func(t *testing.T) {
			l, near, far := open(t)
			l.Set(testcluster.Forth, c)
			send(t, near, "late")
			passes(t, far, "late", false)
			passes(t, far, "late", true)
		})
	}
}

func TestLink_RefusesWhereItLeadsNowhere(t *testing.T) {
	l, near, _ := open(t)
	l.Lead("")
	if _, err := near.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
	c, err := net.Dial("tcp", l.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a new connection is open")
	}
	if l.Refused() != 1 {
		t.Errorf("%d refused, want 1", l.Refused())
	}
}
