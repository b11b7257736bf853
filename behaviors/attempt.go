package behaviors

import (
	"context"
	"io"
	"log/slog"

	"taskledger/engine"
	"taskledger/task"
)

type attemptKey struct{}

// attemptContext is context.WithValue in one piece of memory.
type attemptContext struct {
	context.Context
	attempt task.Attempt
}

// Value implements context.Context.
func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return &c.attempt
	}
	return c.Context.Value(key)
}

// Attempt returns the attempt that ctx belongs to: the task's id, its number, deadline and fencing token, its logger,
// its progress reporter, and what takes its output. If ctx belongs to none, as in a test that calls a handler by
// itself, it returns false and an attempt whose logger, progress reporter and output do nothing.
func Attempt(ctx context.Context) (task.Attempt, bool) {
	var a task.Attempt
	found, ok := ctx.Value(attemptKey{}).(*task.Attempt)
	if ok {
		a = *found
	}
	if a.Log == nil {
		a.Log = slog.New(slog.DiscardHandler)
	}
	if a.Progress == nil {
		a.Progress = func(int64, int64, string) {}
	}
	if a.Output == nil {
		a.Output = func(slog.Level, bool) io.Writer { return io.Discard }
	}
	return a, ok
}

// Submitter returns the client of the node that makes the attempt, for a handler that submits further tasks; false if
// ctx belongs to no attempt. While the handler waits for a future under ctx it lends its slot: see [Future.Wait].
func Submitter(ctx context.Context) (Client, bool) {
	c, ok := engine.ClientFromContext(ctx)
	if !ok {
		return nil, false
	}
	return c, true
}

// lendSlot lends the slot of the attempt that ctx belongs to, if it does to one, until it is taken back.
func lendSlot(ctx context.Context) (takeBack func()) {
	if a, ok := ctx.Value(attemptKey{}).(*task.Attempt); ok && a.Lend != nil {
		return a.Lend()
	}
	return func() {}
}

func withAttempt(ctx context.Context, a task.Attempt) context.Context {
	return &attemptContext{ctx, a}
}
