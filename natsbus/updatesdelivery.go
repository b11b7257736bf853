package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/work/feed"
	"taskledger/work/feed/inorder"
)

// pullGrace is the time in which the server has to tell that a request has expired.
const pullGrace = time.Second

// delivered is a message and how it is answered.
type delivered struct {
	message feed.Message
	reply   string
	size    int // beyond the limit, so that its data and headers are not kept; 0 = within it
}

// pulled holds the request for messages that is under way.
type pulled struct {
	number  int
	left    int // messages that it may still bring
	expires time.Time
}

// receive waits for a delivery, for a while, and takes it.
func (u *Updates) receive(ctx context.Context) error {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case m := <-u.came:
		if strings.HasPrefix(m.Subject, u.inbox) {
			return u.status(m)
		}
		return u.take(m)
	case <-timer.C:
		if u.pulled.left > 0 && time.Now().After(u.pulled.expires) {
			u.has.disturbed = true
			u.unsettle() // what it brings late may be more than there is room for
			return fmt.Errorf("no answer to a request for messages within %s", pullExpires+pullGrace)
		}
	case <-ctx.Done():
	case <-u.ctx.Done():
	}
	return nil
}

// status takes what the server says of a request for messages.
func (u *Updates) status(m *nats.Msg) error {
	if m.Subject != u.inbox+strconv.Itoa(u.pulled.number) {
		return nil
	}
	u.pulled.left = 0
	switch code, why := m.Header.Get("Status"), m.Header.Get("Description"); {
	case code == "408" || code == "404":
		u.has.failing = time.Time{}
		u.has.counted = u.has.rest == 0 // else they may have left the stream
		return nil
	case code == "503":
		u.has.disturbed = true
		u.unsettle()
		return errors.New("nobody answers requests for messages of the consumer")
	default:
		u.has.disturbed = true
		u.unsettle()
		return fmt.Errorf("the request for messages was answered with %s %s", code, why)
	}
}

// take takes a message.
func (u *Updates) take(m *nats.Msg) error {
	is, err := m.Metadata()
	if err != nil || is.Stream != u.cfg.Stream || is.Consumer != u.cfg.Consumer {
		return nil // somebody has sent it here
	}
	u.has.failing = time.Time{}
	u.pulled.left = max(u.pulled.left-1, 0)
	u.has.rest, u.has.counted = is.NumPending, true
	u.has.again = is.NumDelivered > 1
	d := delivered{
		message: feed.Message{
			Place:     is.Sequence.Stream,
			Subject:   m.Subject,
			Header:    m.Header,
			Data:      m.Data,
			Time:      is.Timestamp,
			Delivered: int(is.NumDelivered),
			Removed:   u.has.retention != jetstream.LimitsPolicy,
		},
		reply: m.Reply,
	}
	if size := m.Size() - len(m.Subject) - len(m.Reply); size > u.cfg.MaxBytes {
		d.size, d.message.Data, d.message.Header = size, nil, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	last, gap := u.queue.Count(), false
	if is.Sequence.Consumer > last+1 && u.queue.Settled() && !u.has.disturbed {
		gap = u.conn.Stats().Reconnects == u.has.reconnects // else the others may have been lost with a connection
		u.has.disturbed = true
	}
	switch u.queue.Add(inorder.Delivery[delivered]{
		Place: is.Sequence.Stream,
		Count: is.Sequence.Consumer,
		Value: d,
	}) {
	case inorder.Acknowledged:
		u.conn.Publish(m.Reply, ackText) // it comes again otherwise
	case inorder.Late:
		return fmt.Errorf("message %d: %w", is.Sequence.Stream, feed.ErrLate)
	}
	if gap {
		return fmt.Errorf("%w: %d deliveries before message %d went elsewhere",
			feed.ErrShared, is.Sequence.Consumer-last-1, is.Sequence.Stream)
	}
	return nil
}
