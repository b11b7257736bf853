// Package doors bounds the connections of several listeners together. When a budget is full, a new connection
// displaces one that no handler serves: of those whose latest request has shown no token the one that has been
// unserved for longest, whether it has sent nothing, half a header or half a handshake, or is idle; and only where
// there is none of these, one of a token. Each connection first has a moment for its request, which begins when the
// server begins to read it. A smaller budget gives a shorter moment, so that a new connection gets room soon. A peer
// that merely connects keeps nobody out, however fast it is.
package doors

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// longest protects a connection that has just come, or was just answered, from displacement: a handshake from far
	// away is done by then.
	longest = 100 * time.Millisecond
	// turn bounds the time between two connections that a full budget admits while handlers serve none of its own. A
	// connection of a small budget therefore has less than longest.
	turn = 400 * time.Microsecond
)

// Budget bounds the connections of all listeners that share it.
type Budget struct {
	most   int
	moment time.Duration // protects a connection from displacement

	mu        sync.Mutex
	open      int
	strangers list.List     // *Conn that no handler serves, the one unserved for longest first: without a token
	known     list.List     // the same, of those whose latest request has shown a token
	changed   chan struct{} // admit waits for it to be closed; nil = nobody waits
	displaced int64
}

// New returns a budget of most connections, and of 1 where most is less.
func New(most int) *Budget {
	most = max(most, 1)
	return &Budget{most: most, moment: min(longest, time.Duration(most)*turn)}
}

// State counts connections: the open ones, the most that may be open, and those displaced so far.
type State struct {
	Open, Most int
	Displaced  int64
}

// State counts the connections of the budget at one moment.
func (b *Budget) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return State{b.open, b.most, b.displaced}
}

// Listen returns a listener whose connections count against the budget. TLS goes on top of it.
func (b *Budget) Listen(l net.Listener) net.Listener {
	return &listener{Listener: l, budget: b, closed: make(chan struct{})}
}

type listener struct {
	net.Listener
	budget *Budget
	closed chan struct{}
	once   sync.Once
}

// Accept waits for a connection, and then for room while handlers serve all others.
func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: raw, budget: l.budget}
	if !l.budget.admit(c, l.closed) {
		_ = raw.Close() // nothing was asked
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// admit waits until the connection has a place, or the listener is closed.
func (b *Budget) admit(c *Conn, closed <-chan struct{}) bool {
	for {
		b.mu.Lock()
		if b.open < b.most {
			b.open++
			c.waitsLocked()
			c.since = time.Time{}
			b.mu.Unlock()
			return true
		}
		first := b.strangers.Front()
		if first == nil {
			first = b.known.Front()
		}
		var young <-chan time.Time
		if first != nil && !first.Value.(*Conn).since.IsZero() {
			other := first.Value.(*Conn)
			age := time.Since(other.since)
			if age >= b.moment {
				other.leaveLocked()
				b.displaced++
				b.mu.Unlock()
				_ = other.Close() // its end makes room, whatever its peer learns of it
				continue
			}
			young = time.After(b.moment - age)
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-young:
		case <-closed:
			return false
		}
	}
}

// changeLocked wakes connections that wait for room.
func (b *Budget) changeLocked() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Conn is a connection of a budget.
type Conn struct {
	net.Conn
	budget *Budget
	read   sync.Once // begins the moment of a new connection

	// Of the budget's lock.
	since time.Time     // no handler has served the connection; zero = the server has not begun to read it
	in    *list.List    // holds the connection; nil = a handler serves it, or it has ended
	at    *list.Element // in it
	token bool          // the latest request has shown one
	ended bool
}

// waitsLocked puts the connection behind those that no handler serves.
func (c *Conn) waitsLocked() {
	if c.ended || c.in != nil {
		return
	}
	c.in = &c.budget.strangers
	if c.token {
		c.in = &c.budget.known
	}
	c.at, c.since = c.in.PushBack(c), time.Now()
	c.budget.changeLocked()
}

func (c *Conn) leaveLocked() {
	if c.in != nil {
		c.in.Remove(c.at)
		c.in, c.at = nil, nil
	}
}

// Read implements net.Conn. A busy server may begin to read a connection long after it has accepted it.
func (c *Conn) Read(p []byte) (int, error) {
	c.read.Do(func() {
		c.budget.mu.Lock()
		defer c.budget.mu.Unlock()
		if c.since.IsZero() {
			c.since = time.Now()
			c.budget.changeLocked()
		}
	})
	return c.Conn.Read(p)
}

// Close ends the connection, and gives its place back.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.leaveLocked(); !c.ended {
		c.ended = true
		b.open--
		b.changeLocked()
	}
	return err
}

// CloseWrite ends the sending side of the connection, where it has one: so net/http lets a client that has not sent
// its whole request read the answer.
func (c *Conn) CloseWrite() error {
	if half, is := c.Conn.(interface{ CloseWrite() error }); is {
		return half.CloseWrite()
	}
	return nil
}

// Serving says that a handler serves a request of the connection until done is called; nil is a connection without a
// budget.
func (c *Conn) Serving() (done func()) {
	if c == nil {
		return func() {}
	}
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.leaveLocked()
	c.token = false
	return c.Answered
}

// Answered says that the request is answered: a new connection may displace this one, though its handler goes on.
func (c *Conn) Answered() {
	if c == nil {
		return
	}
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.waitsLocked()
}

// ShowsToken says that the request which is served has shown a token.
func (c *Conn) ShowsToken() {
	if c == nil {
		return
	}
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.token = true
}

type key struct{}

// Context puts a connection into the context of its requests, for Of. It goes into http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	if secure, is := c.(*tls.Conn); is {
		c = secure.NetConn()
	}
	if bounded, is := c.(*Conn); is {
		return context.WithValue(ctx, key{}, bounded)
	}
	return ctx
}

// Of returns the connection of a request; nil if the connection has no budget, or Context was not set.
func Of(r *http.Request) *Conn {
	c, _ := r.Context().Value(key{}).(*Conn)
	return c
}
