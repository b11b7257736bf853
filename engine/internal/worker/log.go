package worker

import (
	"context"
	"log/slog"
)

// attemptLog adds to each record which attempt it is of; only then, since most attempts log nothing.
type attemptLog struct {
	slog.Handler
	a *attempt
}

// Handle implements slog.Handler.
func (h *attemptLog) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(
		slog.String("task", string(h.a.Task)),
		slog.String("behavior", h.a.Assignment.Behavior),
		slog.Uint64("attempt", uint64(h.a.Number)),
	)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *attemptLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &attemptLog{h.Handler.WithAttrs(attrs), h.a}
}

// WithGroup implements slog.Handler.
func (h *attemptLog) WithGroup(name string) slog.Handler {
	return &attemptLog{h.Handler.WithGroup(name), h.a}
}
