package traffic

import (
	"context"
	"log/slog"
)

type sessionKey struct{}

// SessionOf asks the logger of an attempt, which writes to Sessions, for the session that runs it: the node may have
// another one by now.
func SessionOf(ctx context.Context, log *slog.Logger) (id string) {
	log.InfoContext(context.WithValue(ctx, sessionKey{}, &id), "which session")
	return id
}

// Sessions is a log handler that knows the session of a node, and tells Joined of every new one. It implements
// slog.Handler by another one, which may drop everything.
type Sessions struct {
	slog.Handler
	Joined func(id string)

	id string
}

// Enabled implements slog.Handler.
func (s *Sessions) Enabled(ctx context.Context, l slog.Level) bool {
	return ctx.Value(sessionKey{}) != nil || s.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler: the node gives its logger the id of each session.
func (s *Sessions) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := &Sessions{s.Handler.WithAttrs(attrs), s.Joined, s.id}
	for _, a := range attrs {
		if a.Key == "session" {
			with.id = a.Value.String()
			s.Joined(with.id)
		}
	}
	return with
}

// WithGroup implements slog.Handler.
func (s *Sessions) WithGroup(name string) slog.Handler {
	return &Sessions{s.Handler.WithGroup(name), s.Joined, s.id}
}

// Handle implements slog.Handler.
func (s *Sessions) Handle(ctx context.Context, r slog.Record) error {
	if id, asked := ctx.Value(sessionKey{}).(*string); asked {
		*id = s.id
		return nil
	}
	return s.Handler.Handle(ctx, r)
}
