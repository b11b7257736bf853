package testcluster

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// leaves is the line of a client that had no time to remove its mail, which the attribute sender names.
const leaves = "mail stays until it is swept"

// swept remembers the senders whose mail a later sweep removes, as the log tells: a machine that is busy may give a
// client too little time to do it.
type swept struct {
	mu      sync.Mutex
	senders []string
}

// add remembers a sender.
func (s *swept) add(sender string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.senders = append(s.senders, sender)
}

// has reports whether a key belongs to one of the senders.
func (s *swept) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sender := range s.senders {
		if strings.Contains(key, "/"+sender) {
			return true
		}
	}
	return false
}

// handler is a handler that takes note of such lines, and passes all on.
type handler struct {
	slog.Handler
	swept *swept
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == leaves {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "sender" {
				h.swept.add(a.Value.String())
			}
			return true
		})
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.swept}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.swept}
}
