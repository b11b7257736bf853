package testkit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"
)

// WantReturn fails the test when f waits. The time is used up only by a failure.
func WantReturn(t testing.TB, what string, f func()) {
	t.Helper()
	returned := make(chan struct{})
	go func() {
		f()
		close(returned)
	}()
	select {
	case <-returned:
	case <-time.After(10 * time.Second):
		t.Errorf("%s waits", what)
	}
}

// CallingLog is the handler of a log that calls Do for every record.
type CallingLog struct {
	Do      func()
	records atomic.Int64
}

// Records returns how many records Do has returned from.
func (l *CallingLog) Records() int { return int(l.records.Load()) }

// Handle implements slog.Handler.
func (l *CallingLog) Handle(context.Context, slog.Record) error {
	l.Do()
	l.records.Add(1)
	return nil
}

// Enabled implements slog.Handler.
func (l *CallingLog) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (l *CallingLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *CallingLog) WithGroup(string) slog.Handler { return l }
