package modeletcd

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
)

// Cut is a Transport on which nothing travels while it is off. The zero value is on.
type Cut struct {
	mu   sync.Mutex
	open chan struct{} // closed when it is on again; nil = it is
}

// Off lets everything wait until On.
func (w *Cut) Off() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = make(chan struct{})
}

// On lets go on what waits.
func (w *Cut) On() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.open)
	w.open = nil
}

// Deliver is described in Transport.
func (w *Cut) Deliver(ctx context.Context) error {
	w.mu.Lock()
	open := w.open
	w.mu.Unlock()
	if open == nil {
		return nil
	}
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Call is described in Transport.
func (w *Cut) Call(ctx context.Context, call Call) (proto.Message, error) {
	if err := w.Deliver(ctx); err != nil {
		return nil, err
	}
	return call.Make()
}

// Slow is a Transport on which every request takes so long to arrive.
type Slow time.Duration

// Deliver is described in Transport.
func (Slow) Deliver(context.Context) error { return nil }

// Call is described in Transport.
func (s Slow) Call(ctx context.Context, call Call) (proto.Message, error) {
	select {
	case <-time.After(time.Duration(s)):
		return call.Make()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
