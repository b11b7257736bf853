// Package membus carries hints and requests within one process. It keeps the contract of store.Bus: messages are lost
// where a handler is 65,536 of them or 64 MiB behind, of which Notify tells once it has caught up.
package membus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"taskledger/store"
)

const (
	// pendingMessages and pendingBytes bound what waits for a handler; further messages are dropped.
	pendingMessages = 64 << 10
	pendingBytes    = 64 << 20
)

// ErrClosed reports a use after Close.
var ErrClosed = errors.New("bus is closed")

// ErrSubject reports a subject that is not made of tokens of [A-Za-z0-9_-], joined by dots.
var ErrSubject = errors.New("malformed subject")

// Bus is a bus of one process. Its methods may be called concurrently. The caller closes it.
type Bus struct {
	running sync.WaitGroup // goroutines of subscriptions

	mu            sync.Mutex
	closed        bool
	subscriptions map[string][]*subscription // by first token, which no pattern leaves open
	listeners     map[*listener]struct{}
}

var _ store.Bus = (*Bus)(nil)

// New returns a bus without subscriptions.
func New() *Bus {
	return &Bus{subscriptions: map[string][]*subscription{}, listeners: map[*listener]struct{}{}}
}

// Publish implements store.Bus. Each handler gets a copy of data.
func (b *Bus) Publish(subject, reply string, data []byte) error {
	tokens, err := literal(subject)
	if err == nil && reply != "" {
		_, err = literal(reply)
	}
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("publish on %s: %w", subject, ErrClosed)
	}
	to := b.receivers(tokens)
	if len(to) == 0 && reply != "" {
		for _, s := range b.receivers(strings.Split(reply, ".")) {
			s.bring(store.Message{Subject: reply, NoResponders: true})
			return nil // as a server tells one connection once
		}
	}
	for _, s := range to {
		s.bring(store.Message{Subject: subject, Reply: reply, Data: bytes.Clone(data)})
	}
	return nil
}

// receivers returns who gets a message on a subject: of those that share a queue, one. The caller holds mu.
func (b *Bus) receivers(tokens []string) (to []*subscription) {
	queues := map[string][]*subscription{}
	for _, s := range b.subscriptions[tokens[0]] {
		switch {
		case !s.matches(tokens):
		case s.queue == "":
			to = append(to, s)
		default:
			queues[s.queue] = append(queues[s.queue], s)
		}
	}
	for _, group := range queues {
		to = append(to, group[rand.N(len(group))])
	}
	return to
}

// Subscribe implements store.Bus. subject may hold the wildcard *, except as its first token, and at its end >.
func (b *Bus) Subscribe(ctx context.Context, subject, queue string, h func(store.Message)) error {
	pattern, err := wild(subject)
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	s := &subscription{
		pattern: pattern,
		queue:   queue,
		handle:  h,
		came:    make(chan struct{}, 1),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("subscribe to %s: %w", subject, ErrClosed)
	}
	ctx, s.stop = context.WithCancel(ctx)
	b.subscriptions[pattern[0]] = append(b.subscriptions[pattern[0]], s)
	b.running.Go(func() {
		s.run(ctx, b.missed)
		b.leave(s)
	})
	return nil
}

// missed tells all listeners that messages were lost.
func (b *Bus) missed() {
	b.mu.Lock()
	told := slices.Collect(maps.Keys(b.listeners))
	b.mu.Unlock()
	for _, l := range told {
		l.hear(true)
	}
}

// leave ends a subscription.
func (b *Bus) leave(s *subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.stop()
	same := b.subscriptions[s.pattern[0]]
	b.subscriptions[s.pattern[0]] = slices.DeleteFunc(same, func(other *subscription) bool { return other == s })
	if len(b.subscriptions[s.pattern[0]]) == 0 {
		delete(b.subscriptions, s.pattern[0])
	}
}

// Notify implements store.Bus. The bus is connected until Close.
func (b *Bus) Notify(ctx context.Context, h func(connected bool)) error {
	l := &listener{tell: h}
	b.mu.Lock()
	connected := !b.closed
	if connected {
		b.listeners[l] = struct{}{}
	}
	b.mu.Unlock()
	l.hear(connected)
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		delete(b.listeners, l)
		b.mu.Unlock()
		l.end()
	})
	return nil
}

// Close ends every subscription and waits for handlers that are running. It must not be called from one.
func (b *Bus) Close() error {
	b.mu.Lock()
	b.closed = true
	for _, same := range b.subscriptions {
		for _, s := range same {
			s.stop()
		}
	}
	told := b.listeners
	b.listeners = nil
	b.mu.Unlock()
	for l := range told {
		l.hear(false)
	}
	b.running.Wait()
	return nil
}

// literal splits a subject into its tokens.
func literal(subject string) ([]string, error) {
	tokens := strings.Split(subject, ".")
	for _, token := range tokens {
		if !isToken(token) {
			return nil, fmt.Errorf("%w: %q", ErrSubject, subject)
		}
	}
	return tokens, nil
}

// wild splits a subject that may hold wildcards.
func wild(subject string) ([]string, error) {
	tokens := strings.Split(subject, ".")
	for i, token := range tokens {
		if !isToken(token) && (i == 0 || token != "*" && (token != ">" || i < len(tokens)-1)) {
			return nil, fmt.Errorf("%w: %q", ErrSubject, subject)
		}
	}
	return tokens, nil
}

func isToken(token string) bool {
	return token != "" && strings.Trim(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
