package natsbus_test

import (
	"net"
	"sync"
)

// wire dials NATS. While it is silent nothing comes of what is sent over it, and nobody notices: that is what a host
// does which hangs.
type wire struct {
	mu     sync.Mutex
	speaks chan struct{} // closed unless it is silent
	kept   []kept
}

// kept holds the bytes that were sent over a connection while it was silent.
type kept struct {
	conn net.Conn
	data []byte
}

func newWire() *wire {
	w := &wire{speaks: make(chan struct{})}
	close(w.speaks)
	return w
}

// Dial implements nats.CustomDialer.
func (w *wire) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return wired{conn, w}, nil
}

func (w *wire) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.speaks = make(chan struct{})
}

// speak passes on what was kept.
func (w *wire) speak() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.speaks)
	for _, k := range w.kept {
		_, _ = k.conn.Write(k.data)
	}
	w.kept = nil
}

// state returns what is closed once the wire is not silent.
func (w *wire) state() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.speaks
}

// wired is a connection over a wire.
type wired struct {
	net.Conn
	over *wire
}

// Read implements net.Conn.
func (c wired) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	<-c.over.state()
	return n, err
}

// Write implements net.Conn.
func (c wired) Write(b []byte) (int, error) {
	c.over.mu.Lock()
	defer c.over.mu.Unlock()
	select {
	case <-c.over.speaks:
		return c.Conn.Write(b)
	default:
	}
	c.over.kept = append(c.over.kept, kept{c.Conn, append([]byte(nil), b...)})
	return len(b), nil
}
