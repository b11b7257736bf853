package testcluster

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Direction is one of the two ways through a link.
type Direction int

// Forth is from whoever dials to whoever listens, Back the other way.
const (
	Forth Direction = iota
	Back
)

// Condition says what becomes of the bytes that go one way. The zero value lets them pass.
type Condition struct {
	Hold    bool          // nothing passes; it does once the condition has ended, as TCP sends again
	Latency time.Duration // of every read of up to 32 KiB; bytes stay in order
	Jitter  time.Duration // at most, at random, on top of Latency
	Rate    int           // bytes a second; 0 = as many as there are
}

// chunk bounds the bytes that a link carries at once.
const chunk = 32 << 10

// Link leads from an address that stays the same to one that may change. It leads nowhere at first: connections are
// refused. Its methods may be called concurrently.
type Link struct {
	Address string // host:port

	listener net.Listener
	running  sync.WaitGroup
	affected atomic.Int64
	refused  atomic.Int64

	mu         sync.Mutex
	to         string // "" = nobody is there
	ended      bool
	changed    chan struct{} // closed at the next change
	conditions map[string][2]Condition
	conns      map[*conn]struct{}
}

// conn is one connection through a link.
type conn struct {
	near, far net.Conn
	peer      string // who dialled, where the first bytes tell; "" until then
	lost      bool   // what it carries vanishes, without either end being told
}

// NewLinkOn makes a link that begins where the listener listens. Close closes it.
func NewLinkOn(listener net.Listener) *Link {
	l := &Link{Address: listener.Addr().String(), listener: listener, changed: make(chan struct{}),
		conditions: map[string][2]Condition{}, conns: map[*conn]struct{}{}}
	l.running.Go(l.serve)
	return l
}

// Lead closes all connections, and carries new ones to the address from now on; "" refuses them.
func (l *Link) Lead(to string) {
	l.change(func() {
		l.to = to
		for c := range l.conns {
			c.close()
		}
	})
}

// Set gives one way a condition, for all who dial.
func (l *Link) Set(way Direction, c Condition) { l.SetPeer("", way, c) }

// SetPeer is Set for the connections of one member of etcd alone, by the id with which members greet each other.
func (l *Link) SetPeer(id string, way Direction, c Condition) {
	l.change(func() {
		both := l.conditions[id]
		both[way] = c
		l.conditions[id] = both
	})
}

// Hold keeps back what goes these ways, for all who dial, until Clear.
func (l *Link) Hold(ways ...Direction) {
	for _, way := range ways {
		l.Set(way, Condition{Hold: true})
	}
}

// Clear ends every condition. Connections that Lose has taken stay lost.
func (l *Link) Clear() { l.change(func() { clear(l.conditions) }) }

// Lose makes the present connections half-open: what either end sends vanishes, and neither hears that the other has
// gone, until Mend. New ones work.
func (l *Link) Lose() {
	l.change(func() {
		for c := range l.conns {
			c.lost = true
		}
	})
}

// Mend closes the connections that Lose has taken, as a host does that has found out.
func (l *Link) Mend() {
	l.change(func() {
		for c := range l.conns {
			if c.lost {
				c.close()
				delete(l.conns, c)
			}
		}
	})
}

// Affected returns how many bytes were kept back, delayed or lost so far.
func (l *Link) Affected() int64 { return l.affected.Load() }

// Refused returns how many connections were refused because the link led nowhere, or to where nobody listened.
func (l *Link) Refused() int64 { return l.refused.Load() }

// Close closes all connections and waits until nothing is carried.
func (l *Link) Close() error {
	l.change(func() {
		l.ended = true
		for c := range l.conns {
			c.close()
		}
	})
	err := l.listener.Close()
	l.running.Wait()
	if err != nil {
		return fmt.Errorf("close link: %w", err)
	}
	return nil
}

func (l *Link) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (c *conn) close() {
	_ = c.near.Close()
	_ = c.far.Close()
}

func (l *Link) serve() {
	for {
		near, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of the one connection
		}
		far, err := l.dial()
		if err != nil {
			l.refused.Add(1)
			_ = near.Close()
			continue
		}
		c := &conn{near: near, far: far}
		if !l.admit(c) {
			c.close()
			continue
		}
		l.running.Go(func() { l.carry(c, Forth) })
		l.running.Go(func() { l.carry(c, Back) })
	}
}

func (l *Link) dial() (net.Conn, error) {
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	return net.Dial("tcp", to) // fails at "" as it does where nobody listens
}

// admit reports false when the link has ended or leads elsewhere by now.
func (l *Link) admit(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.to != c.far.RemoteAddr().String() {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

// carry sends what comes until either end is closed, and closes the other, unless the connection was lost.
func (l *Link) carry(c *conn, way Direction) {
	from, to := c.near, c.far
	if way == Back {
		from, to = to, from
	}
	buf := make([]byte, chunk)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if way == Forth {
				l.greet(c, buf[:n])
			}
			if l.pass(c, way, n) {
				_, broken := to.Write(buf[:n])
				err = errors.Join(err, broken)
			}
		}
		if err != nil {
			l.part(c)
			return
		}
	}
}

// greet learns who dialled from the header that members of etcd send each other.
func (l *Link) greet(c *conn, data []byte) {
	_, after, found := bytes.Cut(data, []byte("X-Server-From: "))
	if !found {
		return
	}
	id, _, _ := bytes.Cut(after, []byte("\r\n"))
	l.mu.Lock()
	defer l.mu.Unlock()
	c.peer = string(id)
}

// pass waits as long as the conditions demand, and reports false when the bytes are lost.
func (l *Link) pass(c *conn, way Direction, n int) bool {
	for counted := false; ; {
		l.mu.Lock()
		all, its := l.conditions[""][way], l.conditions[c.peer][way]
		lost, open, changed := c.lost, l.has(c), l.changed
		l.mu.Unlock()
		hold := all.Hold || its.Hold
		pause := max(all.pause(n), its.pause(n))
		if (lost || hold || pause > 0) && !counted {
			l.affected.Add(int64(n))
			counted = true
		}
		if lost || !open {
			return false
		}
		if !hold {
			l.sleep(pause)
			return true
		}
		<-changed
	}
}

// has reports whether the connection is open; l.mu is held.
func (l *Link) has(c *conn) bool {
	_, open := l.conns[c]
	return open && !l.ended
}

func (c Condition) pause(n int) time.Duration {
	pause := c.Latency
	if c.Jitter > 0 {
		pause += rand.N(c.Jitter)
	}
	if c.Rate > 0 {
		pause += time.Duration(n) * time.Second / time.Duration(c.Rate)
	}
	return pause
}

// sleep ends early when anything changes: a condition of a rate of 1 byte a second must be possible to end.
func (l *Link) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	l.mu.Lock()
	changed := l.changed
	l.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	}
}

// part ends a connection. Of one that was lost, the other end is left to find out for itself.
func (l *Link) part(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.lost && !l.ended {
		return
	}
	c.close()
	delete(l.conns, c)
}
