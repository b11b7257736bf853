package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"taskledger/store"
)

const renewEvery = time.Second

// clockBase anchors the monotonic clock of fences.
var clockBase = time.Now()

// lease is the session of a node in the store, which lasts for as long as it is renewed.
type lease struct {
	sessions store.Sessions
	ttl      time.Duration
	session  store.Session
	began    time.Time
	joinedAt int64                  // by the wall clock, in milliseconds
	renewed  atomic.Int64           // when the last successful renewal was sent, on the monotonic clock
	silence  atomic.Pointer[string] // why the last attempt to renew failed; nil = it did not
}

// begin joins the cluster.
func (l *lease) begin(ctx context.Context, info store.NodeInfo) error {
	sent := time.Now()
	s, err := l.sessions.Join(ctx, info, l.ttl)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	l.session, l.began, l.joinedAt = s, time.Now(), info.Joined
	l.renewed.Store(int64(sent.Sub(clockBase)))
	return nil
}

// extend asks the store once to renew the session.
func (l *lease) extend(ctx context.Context) error {
	sent := time.Now()
	one, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	err := l.sessions.Renew(one, l.session)
	switch {
	case err == nil:
		l.renewed.Store(int64(sent.Sub(clockBase)))
		l.silence.Store(nil)
	case !errors.Is(err, store.ErrSessionEnded) && ctx.Err() == nil:
		why := err.Error()
		l.silence.Store(&why)
	}
	return err
}

// age returns how long ago the last successful renewal was sent.
func (l *lease) age() time.Duration {
	return time.Since(clockBase) - time.Duration(l.renewed.Load())
}

// expiry returns the age at which the session must be taken for over, a little before the store ends it.
func (l *lease) expiry() time.Duration { return l.ttl - min(time.Second, l.ttl/5) }

// leave ends the session within a few seconds, and soon after stopBy if that is set, so that nobody waits for its end.
func (l *lease) leave(ctx context.Context, stopBy time.Time) error {
	most := 5 * time.Second
	if !stopBy.IsZero() { // whoever stops the node does not wait for long after that
		most = min(most, max(time.Second, time.Until(stopBy)))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	if err := l.sessions.Leave(ctx, l.session); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}
