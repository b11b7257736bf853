package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"taskledger/store"
)

// lanes, as reply subjects tell them.
const (
	laneSubmit = "0"
	laneWork   = "1"
	laneQuery  = "2"
	laneOffer  = "3"
)

// fate decides whether and how a message arrives.
type fate int

const (
	pass fate = iota
	drop
	twice
	hold // until release
)

// wire connects a node with the others, over the bus and through the store, with fates that a test decides.
// Messages are known by their lane: batches by their reply subject, answers by their subject.
type wire struct {
	sent     func(lane string) fate // of batches to owners, by bus and store
	answered func(lane string) fate // of answers from the owner here, by bus and store
	heard    func(lane string) fate // of answers that come for the sender here, by bus only
	hinted   func(subject string) fate

	busSent, busAnswered func(lane string) fate // of those, by bus only

	cut bool // the bus is not connected

	mu   sync.Mutex
	held []func()
}

// through puts the wire between a node and its cluster.
func (w *wire) through(c *cfg) {
	c.Store = &wiredStore{c.Store, w}
	if c.Bus != nil {
		c.Bus = &wiredBus{c.Bus, w}
	}
}

// release lets go of what was held.
func (w *wire) release() {
	w.mu.Lock()
	held := w.held
	w.held = nil
	w.mu.Unlock()
	for _, deliver := range held {
		deliver()
	}
}

// holding is the number of messages held.
func (w *wire) holding() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
}

// suffer gives a message its fate.
func (w *wire) suffer(decide func(string) fate, key string, deliver func() error) error {
	f := pass
	if decide != nil {
		f = decide(key)
	}
	switch f {
	case drop:
		return nil
	case twice:
		return errors.Join(deliver(), deliver())
	case hold:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.held = append(w.held, func() { _ = deliver() })
		return nil
	}
	return deliver()
}

type wiredBus struct {
	store.Bus
	w *wire
}

// lane returns the lane of a subject node.<sender>.<shard>.<lane>.<number>; "" of others.
func lane(subject string) string {
	if parts := strings.Split(subject, "."); len(parts) == 5 && parts[0] == "node" {
		return parts[3]
	}
	return ""
}

func (b *wiredBus) Publish(subject, reply string, data []byte) error {
	data = slices.Clone(data)
	deliver := func() error { return b.Bus.Publish(subject, reply, data) }
	switch {
	case b.w.cut:
		return errors.New("not connected")
	case strings.HasPrefix(subject, "shard."):
		return b.w.suffer(b.w.sent, lane(reply), func() error { return b.w.suffer(b.w.busSent, lane(reply), deliver) })
	case lane(subject) != "":
		return b.w.suffer(b.w.answered, lane(subject), func() error { return b.w.suffer(b.w.busAnswered, lane(subject), deliver) })
	}
	return b.w.suffer(b.w.hinted, subject, deliver)
}

func (b *wiredBus) Subscribe(ctx context.Context, subject, queue string, h func(store.Message)) error {
	if b.w.cut {
		return nil
	}
	return b.Bus.Subscribe(ctx, subject, queue, func(m store.Message) {
		_ = b.w.suffer(b.w.heard, lane(m.Subject), func() error { h(m); return nil })
	})
}

func (b *wiredBus) Notify(ctx context.Context, h func(bool)) error {
	if b.w.cut {
		h(false)
		return nil
	}
	return b.Bus.Notify(ctx, h)
}

type wiredStore struct {
	store.Store
	w *wire
}

func (s *wiredStore) Post(ctx context.Context, shard int, sender string, lane uint8, batch []byte) error {
	return s.w.suffer(s.w.sent, fmt.Sprint(lane), func() error {
		return s.Store.Post(context.WithoutCancel(ctx), shard, sender, lane, batch)
	})
}

func (s *wiredStore) Answer(ctx context.Context, l store.MailboxBatch, answer []byte) error {
	return s.w.suffer(s.w.answered, fmt.Sprint(l.Lane), func() error {
		return s.Store.Answer(context.WithoutCancel(ctx), l, answer)
	})
}

// only gives the messages of one lane a fate, while the switch is on.
func only(on *atomic.Bool, lane string, f fate) func(string) fate {
	return func(of string) fate {
		if on.Load() && of == lane {
			return f
		}
		return pass
	}
}
