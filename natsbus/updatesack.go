package natsbus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/work/feed"
)

// Ack implements feed.Source.
func (u *Updates) Ack(ctx context.Context, m feed.Message) error {
	for {
		probes := u.pace.begin(ctx, u.ctx.Done())
		err := u.ackOnce(ctx, m.Place, probes)
		over := ctx.Err() != nil || lasting(err) || errors.Is(err, feed.ErrNotFound)
		if err == nil || over {
			u.pace.ends(probes, err == nil)
		} else {
			u.pace.fails(probes, !u.conn.IsConnected())
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return u.wrap(fmt.Errorf("acknowledge message %d: %w", m.Place, context.Cause(ctx)))
		case over:
			return u.wrap(fmt.Errorf("acknowledge message %d: %w", m.Place, err))
		}
	}
}

// ackOnce acknowledges a message. If the consumer is gone, it is made again behind that message. Where several wait for
// an answer, the one that probes asks whether it is gone.
func (u *Updates) ackOnce(ctx context.Context, place uint64, probes bool) error {
	u.acks.RLock()
	defer u.acks.RUnlock()
	u.mu.Lock()
	d, open := u.queue.Open(place)
	if open {
		u.queue.Doubt(place)
	}
	u.mu.Unlock()
	if !open {
		return feed.ErrNotFound
	}
	err := u.ack(ctx, d.Value.reply)
	if errors.Is(err, nats.ErrNoResponders) {
		err = u.unanswered(ctx, err, probes)
	}
	if err == nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.queue.Acknowledge(place)
	}
	return err
}

// unanswered returns nil if nobody has answered an acknowledgement because the consumer is gone.
func (u *Updates) unanswered(ctx context.Context, err error, probes bool) error {
	u.asks.Lock()
	defer u.asks.Unlock()
	if u.pace.waits() && !probes { // another one has asked meanwhile
		return err
	}
	is, unknown := u.info(ctx)
	switch {
	case errors.Is(unknown, jetstream.ErrStreamNotFound) && !u.pace.believes(probes):
		u.pace.fails(false, false)
		return err
	case unknown != nil:
		u.pace.fails(false, !u.conn.IsConnected())
		return unknown
	case is == nil:
		return nil
	}
	return err
}

// Progress implements feed.Source.
func (u *Updates) Progress(_ context.Context, m feed.Message) error {
	u.mu.Lock()
	d, open := u.queue.Open(m.Place)
	u.mu.Unlock()
	err := feed.ErrNotFound
	switch {
	case u.ctx.Err() != nil:
		err = feed.ErrClosed
	case open && (!u.conn.IsConnected() || u.pace.waits()):
		err = feed.ErrAway
	case open:
		err = u.conn.Publish(d.Value.reply, progressText)
	}
	if err != nil {
		return u.wrap(fmt.Errorf("report message %d in progress: %w", m.Place, err))
	}
	return nil
}
