package taskstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// lease keeps an item claimed while a handler works on it.
type lease struct {
	ctx    context.Context // the handler's
	cancel context.CancelCauseFunc
	id     atomic.Int64 // the item's, 0 once it is gone
	ending chan struct{}
	ended  chan struct{}
}

// keep renews the claim of an item after half of its time, again and again, until stop.
func (w *Worker) keep(ctx context.Context, it *Item) *lease {
	l := &lease{ending: make(chan struct{}), ended: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.id.Store(it.ID)
	go func() {
		defer close(l.ended)
		w.renew(ctx, l)
	}()
	return l
}

// stop ends the renewals, of which it waits for the one that is under way: cancelled, it might have given the item an id that nobody knows. It
// returns the item's id, 0 if that is gone.
func (l *lease) stop() int64 {
	close(l.ending)
	<-l.ended
	l.cancel(context.Canceled)
	return l.id.Load()
}

func (w *Worker) renew(ctx context.Context, l *lease) {
	half := w.cfg.Duration / 2
	timer := time.NewTimer(half)
	defer timer.Stop()
	for {
		select {
		case <-l.ending:
			return
		case <-timer.C:
		}
		u := &Update{Changes: []Change{{ID: l.id.Load(), At: When(-w.cfg.Duration.Milliseconds()), Keep: true}}}
		made, err := w.update(ctx, u)
		_, gone := errors.AsType[*ConflictError](err)
		switch {
		case err == nil:
			l.id.Store(made[0].ID)
		case gone || errors.Is(err, ErrUnknown): // the id is gone, or may be
			l.id.Store(0)
			l.cancel(errors.Join(ErrLost, err))
			return
		default:
			w.log.Warn("claim is not renewed", "item", l.id.Load(), "err", err)
		}
		timer.Reset(half)
	}
}
