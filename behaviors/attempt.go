package behaviors

import (
	"context"
	"log/slog"

	"taskledger/engine"
)

type attemptKey struct{}

// Attempt returns the run that ctx belongs to: id, number, deadline, fencing token, logger, progress. When ctx belongs to
// none, as in a test that calls a handler, it returns false and an attempt whose logger and progress reporter do nothing.
func Attempt(ctx context.Context) (engine.Attempt, bool) {
	a, ok := ctx.Value(attemptKey{}).(engine.Attempt)
	if a.Log == nil {
		a.Log = slog.New(slog.DiscardHandler)
	}
	if a.Progress == nil {
		a.Progress = func(int64, int64, string) {}
	}
	return a, ok
}

func withAttempt(ctx context.Context, a engine.Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}
