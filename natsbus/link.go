package natsbus

import (
	"context"
	"sync"
	"sync/atomic"
)

// link is what the bus knows of its connection, and who wants to be told.
//
// It keeps a state of its own because the client's is behind a lock that the client holds while it dials: whoever asks
// the client waits for the network.
type link struct {
	up atomic.Bool // written under mu

	mu        sync.Mutex // held while listeners are called, so that calls are made one at a time
	listeners map[*listener]struct{}
	ended     bool // late callbacks of the client mean nothing any more
}

type listener struct {
	ctx  context.Context
	call func(connected bool)
}

func newLink() *link { return &link{listeners: map[*listener]struct{}{}} }

// listen calls h with the state now and at every later report, until ctx ends.
func (l *link) listen(ctx context.Context, h func(connected bool)) {
	who := &listener{ctx: ctx, call: h}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners[who] = struct{}{}
	context.AfterFunc(ctx, func() { l.forget(who) })
	who.tell(l.up.Load())
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
	defer l.mu.Unlock()
	if !l.ended && (up || l.up.Load()) {
		l.up.Store(up)
		l.tellAll(up)
	}
}

// end reports the connection lost, for good.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up.Swap(false) {
		l.tellAll(false)
	}
	l.ended = true
}

// missed tells that messages were lost though the connection is up. A lost connection will be told as one.
func (l *link) missed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up.Load() {
		l.tellAll(true)
	}
}

func (l *link) tellAll(up bool) {
	for who := range l.listeners {
		who.tell(up)
	}
}

func (w *listener) tell(up bool) {
	if w.ctx.Err() == nil {
		w.call(up)
	}
}
