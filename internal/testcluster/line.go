package testcluster

import (
	"net"
	"sync"
	"testing"
)

// line carries connections from an address that stays the same to one that may change.
type line struct {
	Address string

	listener net.Listener
	running  sync.WaitGroup
	ended    chan struct{}

	mu    sync.Mutex
	to    string        // "" = nobody is there
	open  chan struct{} // closed unless the line is held
	conns map[net.Conn]struct{}
}

// newLine makes a line that leads nowhere and lives as long as the test.
func newLine(t testing.TB) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	l := &line{Address: listener.Addr().String(), listener: listener, ended: make(chan struct{}), open: make(chan struct{}),
		conns: map[net.Conn]struct{}{}}
	close(l.open)
	l.running.Go(l.serve)
	t.Cleanup(l.close)
	return l
}

// lead cuts all connections, and carries new ones to the address from now on; "" refuses them.
func (l *line) lead(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
	for c := range l.conns {
		_ = c.Close()
	}
}

// hold keeps back everything that is sent, in both directions, until release.
func (l *line) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

func (l *line) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.open)
}

func (l *line) close() {
	close(l.ended)
	_ = l.listener.Close()
	l.lead("")
	l.running.Wait()
}

func (l *line) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // it is closed
		}
		far, err := l.dial()
		if err != nil || !l.admit(near, far) {
			_ = near.Close()
			continue
		}
		l.running.Go(func() { l.carry(far, near) })
		l.running.Go(func() { l.carry(near, far) })
	}
}

func (l *line) dial() (net.Conn, error) {
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	return net.Dial("tcp", to) // fails at "" as it does where nobody listens
}

// admit reports false when the line has ended or leads elsewhere by now.
func (l *line) admit(near, far net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != far.RemoteAddr().String() {
		_ = far.Close()
		return false
	}
	l.conns[near], l.conns[far] = struct{}{}, struct{}{}
	return true
}

// carry sends what comes until either end is closed, and closes the other.
func (l *line) carry(to, from net.Conn) {
	defer l.forget(to, from)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		l.pass()
		if _, broken := to.Write(buf[:n]); err != nil || broken != nil {
			return
		}
	}
}

// pass waits until the line is not held.
func (l *line) pass() {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
	case <-l.ended:
	}
}

func (l *line) forget(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(l.conns, c)
	}
}
