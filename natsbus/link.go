package natsbus

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// link holds the state of the bus's connection, and the listeners that follow it.
//
// It keeps a state of its own because the client's is behind a lock that the client holds while it dials: whoever asks
// the client waits for the network.
type link struct {
	up atomic.Bool // written under mu

	mu        sync.Mutex
	listeners map[*listener]struct{}
	ended     bool // late callbacks of the client mean nothing any more
	telling   int  // listeners that are being told
	told      sync.Cond
}

// listener receives one state at a time, in order. The first goroutine that reports a state delivers it, and also
// those that others report meanwhile, so nobody waits while the listener is at work.
type listener struct {
	ctx     context.Context
	call    func(connected bool)
	due     []bool // what it has still to be told
	telling bool
}

func newLink() *link {
	l := &link{listeners: map[*listener]struct{}{}}
	l.told.L = &l.mu
	return l
}

// listen calls h with the state now and at every later report, until ctx ends.
func (l *link) listen(ctx context.Context, h func(connected bool)) {
	who := &listener{ctx: ctx, call: h}
	l.mu.Lock()
	l.listeners[who] = struct{}{}
	who.add(l.up.Load())
	l.tellLocked(who)
	l.mu.Unlock()
	context.AfterFunc(ctx, func() { l.forget(who) }) // ctx is the caller's: not under the lock
}

func (l *link) forget(who *listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.listeners, who)
}

// report records the state and tells it, unless it is a loss already known. A connection that is up again is always
// told: messages may have been missed.
func (l *link) report(up bool) {
	l.mu.Lock()
	if !l.ended && (up || l.up.Load()) {
		l.up.Store(up)
		l.addAll(up)
	}
	l.unlock()
}

// end reports the connection lost, for good. It returns when everybody has been told.
func (l *link) end() {
	l.mu.Lock()
	if l.up.Swap(false) {
		l.addAll(false)
	}
	l.ended = true
	l.unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.telling > 0 {
		l.told.Wait()
	}
}

// missed tells that messages were lost though the connection is up. A lost connection will be told as one.
func (l *link) missed() {
	l.mu.Lock()
	if l.up.Load() {
		l.addAll(true)
	}
	l.unlock()
}

func (l *link) addAll(up bool) {
	for who := range l.listeners {
		who.add(up)
	}
}

// add lets the listener be told. A state that it has still to be told says as much when it comes as the same one
// again would.
func (w *listener) add(up bool) {
	if n := len(w.due); n == 0 || w.due[n-1] != up {
		w.due = append(w.due, up)
	}
}

// unlock ends a change, and delivers due states to the listeners.
func (l *link) unlock() {
	for _, who := range slices.Collect(maps.Keys(l.listeners)) { // they change while one is called
		l.tellLocked(who)
	}
	l.mu.Unlock()
}

// tellLocked tells a listener all that is due, unless somebody does already. The lock is free while it is called.
func (l *link) tellLocked(who *listener) {
	if who.telling {
		return
	}
	who.telling = true
	l.telling++
	for len(who.due) > 0 {
		up := who.due[0]
		who.due = who.due[1:]
		l.mu.Unlock()
		if who.ctx.Err() == nil {
			who.call(up)
		}
		l.mu.Lock()
	}
	who.telling = false
	l.telling--
	l.told.Broadcast()
}
