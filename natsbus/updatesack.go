package natsbus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"taskledger/work/feed"
)

// Ack implements feed.Source.
func (u *Updates) Ack(ctx context.Context, m feed.Message) error {
	for {
		err := u.ackOnce(ctx, m.Place)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return u.wrap(fmt.Errorf("acknowledge message %d: %w", m.Place, context.Cause(ctx)))
		case lasting(err) || errors.Is(err, feed.ErrNotFound):
			return u.wrap(fmt.Errorf("acknowledge message %d: %w", m.Place, err))
		}
		u.pause(ctx, retryPause)
	}
}

// ackOnce acknowledges a message. If the consumer is gone, it is made again behind that message.
func (u *Updates) ackOnce(ctx context.Context, place uint64) error {
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
		is, unknown := u.info(ctx)
		switch {
		case unknown != nil:
			err = unknown
		case is == nil:
			err = nil
		}
	}
	if err == nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.queue.Acknowledge(place)
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
	case open && !u.conn.IsConnected():
		err = feed.ErrAway
	case open:
		err = u.conn.Publish(d.Value.reply, progressText)
	}
	if err != nil {
		return u.wrap(fmt.Errorf("report message %d in progress: %w", m.Place, err))
	}
	return nil
}
