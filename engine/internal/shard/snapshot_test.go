package shard_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// looking is a log whose reader looks at the owner.
type looking struct {
	slog.Handler
	look  func()
	lines int
}

// Enabled implements slog.Handler.
func (l *looking) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (l *looking) WithAttrs([]slog.Attr) slog.Handler { return l }

// Handle implements slog.Handler.
func (l *looking) Handle(context.Context, slog.Record) error {
	l.lines++
	l.look()
	return nil
}

// A log may be slow, or ask the engine in its turn.
func TestSnapshot_ThatIsGivenUpIsNotLoggedUnderALock(t *testing.T) {
	b, log := newFixture(t), &looking{}
	b.cfg.Log = slog.New(log)
	b.takeOver()
	log.look = func() { _ = b.own.SnapshotProblem() }
	b.own.GiveUpSnapshot(1, errors.New("cut"))
	if log.lines != 1 || b.own.SnapshotProblem() != "cut" {
		t.Errorf("%d lines, problem %q; want one, and that it was cut", log.lines, b.own.SnapshotProblem())
	}
}
