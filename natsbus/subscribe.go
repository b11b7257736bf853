package natsbus

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"taskledger/store"
)

const (
	// pendingMessages and pendingBytes bound the queue of a handler; further messages are dropped, and Notify reports
	// it.
	pendingMessages = 64 << 10
	pendingBytes    = 64 << 20
	// subscribeTimeout bounds how long Subscribe waits for the client, which holds its lock while it connects.
	subscribeTimeout = 50 * time.Millisecond
)

// Subscribe implements store.Bus. subject may hold the wildcards * and, at the end, >; Message.Subject is the one
// that the message was sent on. Of several subscriptions of this bus that match a reply subject, all get answers
// but one alone is told that nobody listens. A handler that falls 65,536 messages or 64 MiB behind loses messages;
// Notify then tells true when it begins and again when the handler has caught up. While a connection is being made,
// Subscribe returns within 50 ms, and the subscription is made when the attempt ends, after 4 s at most; if there
// is a connection by then, Notify tells true once more. Errors: a bad subject, or one that wraps
// nats.ErrConnectionClosed.
func (b *Bus) Subscribe(ctx context.Context, subject, queue string, h func(store.Message)) error {
	if err := checkPattern(subject); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	if err := b.enter(); err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	made, abandoned := make(chan error), make(chan struct{})
	go func() {
		err := b.subscribe(ctx, subject, queue, h)
		select {
		case made <- err:
		case <-abandoned:
			if err == nil {
				b.link.missed() // what was published until now
			} else if b.ctx.Err() == nil {
				b.log.Error("bus error", "err", err)
			}
		}
	}()
	timer := time.NewTimer(subscribeTimeout)
	defer timer.Stop()
	select {
	case err := <-made:
		return err
	case <-timer.C:
		close(abandoned)
		return nil
	}
}

// subscribe waits for the client. It has been counted.
func (b *Bus) subscribe(ctx context.Context, subject, queue string, h func(store.Message)) error {
	s := &subscription{bus: b, ctx: ctx, handle: h}
	sub, err := b.conn.QueueSubscribe(b.prefix+subject, queue, s.receive)
	if err != nil {
		b.subscriptions.Done()
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	s.endWith(sub)
	if err := sub.SetPendingLimits(pendingMessages, pendingBytes); err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return nil
}

// enter counts a subscription, unless Close may be waiting for them already.
func (b *Bus) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nats.ErrConnectionClosed
	}
	b.subscriptions.Add(1)
	return nil
}

// subscription is one handler. The client calls receive for one message at a time.
type subscription struct {
	bus     *Bus
	ctx     context.Context
	handle  func(store.Message)
	dropped int // messages, at the last time that the loss was told
}

// endWith ends sub when its context or the bus ends, and counts it as ended when its goroutine has.
func (s *subscription) endWith(sub *nats.Subscription) {
	leave := func() { _ = sub.Unsubscribe() } // fails only when it is closed already
	stopContext := context.AfterFunc(s.ctx, leave)
	stopBus := context.AfterFunc(s.bus.ctx, leave)
	ended := sync.OnceFunc(func() {
		stopContext()
		stopBus()
		s.bus.subscriptions.Done()
	})
	sub.SetClosedHandler(func(string) { ended() })
	if !sub.IsValid() { // the connection was closed before the handler was set
		ended()
	}
}

func (s *subscription) receive(m *nats.Msg) {
	if s.ctx.Err() != nil || s.bus.ctx.Err() != nil {
		return // what was queued when it ended
	}
	if msg, ok := s.bus.open(m); ok {
		s.handle(msg)
	} else {
		s.bus.dropForged(m.Subject)
	}
	s.tellLoss(m.Sub)
}

// tellLoss tells once the handler has caught up that messages were dropped since the last time. A loss told while the
// queue is still full would be followed by losses that nobody hears of.
func (s *subscription) tellLoss(sub *nats.Subscription) {
	dropped, err := sub.Dropped()
	if err != nil || dropped == s.dropped {
		return
	}
	messages, bytes, err := sub.Pending()
	if err != nil || messages > pendingMessages/2 || bytes > pendingBytes/2 {
		return
	}
	s.dropped = dropped
	s.bus.link.missed()
}

// open returns what m means to the engine, or false when no member of the cluster can have sent it.
func (b *Bus) open(m *nats.Msg) (store.Message, bool) {
	subject, inside := strings.CutPrefix(m.Subject, b.prefix)
	if !inside {
		return store.Message{}, false
	}
	if isNoResponders(m) {
		return store.Message{Subject: subject, NoResponders: true}, strings.HasPrefix(subject, replies)
	}
	msg := store.Message{Subject: subject, Data: m.Data}
	if isPublic(subject) {
		return msg, true
	}
	msg.Reply = strings.TrimPrefix(m.Reply, b.prefix)
	body, ok := b.frames.open(m.Subject, m.Reply, m.Data)
	msg.Data = body
	return msg, ok
}

// isNoResponders reports whether m is the server's word that a request met nobody. No member sends empty payloads on
// subjects that are not public.
func isNoResponders(m *nats.Msg) bool {
	return len(m.Data) == 0 && m.Header.Get("Status") == "503"
}

func isPublic(subject string) bool { return strings.HasPrefix(subject, public) }
