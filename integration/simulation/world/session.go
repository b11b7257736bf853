package world

import (
	"context"
	"log/slog"
)

type sessionKey struct{}

// sessionOf asks the logger of an attempt for the session that runs it: the node may have another one by now.
func sessionOf(ctx context.Context, log *slog.Logger) (id string) {
	log.InfoContext(context.WithValue(ctx, sessionKey{}, &id), "which session")
	return id
}

// sessions is a log handler that drops everything and knows the session of its node. It implements slog.Handler.
type sessions struct{ id string }

// Enabled implements slog.Handler.
func (sessions) Enabled(ctx context.Context, _ slog.Level) bool {
	return ctx.Value(sessionKey{}) != nil
}

// Handle implements slog.Handler.
func (s sessions) Handle(ctx context.Context, _ slog.Record) error {
	*ctx.Value(sessionKey{}).(*string) = s.id
	return nil
}

// WithAttrs implements slog.Handler: the node gives its logger the id of each session.
func (s sessions) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "node" {
			return sessions{a.Value.String()}
		}
	}
	return s
}

// WithGroup implements slog.Handler.
func (s sessions) WithGroup(string) slog.Handler { return s }
