package worker

import (
	"context"
	"io"
	"log/slog"
	"time"

	"taskledger/engine/internal/logwriters"
	"taskledger/tasklog"
)

// attemptLog adds to each record which attempt it is of; only then, since most attempts log nothing. Where logs are
// kept it writes the record to that of the attempt, too, as it came.
type attemptLog struct {
	slog.Handler
	a    *attempt
	with func(slog.Handler) slog.Handler // makes the handler of the log that is kept what this one is; nil = it is
}

// Enabled implements slog.Handler.
func (h *attemptLog) Enabled(ctx context.Context, level slog.Level) bool {
	return h.keeps(level) || h.Handler.Enabled(ctx, level)
}

func (h *attemptLog) keeps(level slog.Level) bool { return level >= slog.LevelInfo && h.a.keepsLog() }

// Handle implements slog.Handler.
func (h *attemptLog) Handle(ctx context.Context, r slog.Record) error {
	if h.keeps(r.Level) {
		h.a.keptLog().Handle(ctx, r, h.with)
		if !h.Handler.Enabled(ctx, r.Level) {
			return nil
		}
	}
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
	return h.derive(func(of slog.Handler) slog.Handler { return of.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (h *attemptLog) WithGroup(name string) slog.Handler {
	return h.derive(func(of slog.Handler) slog.Handler { return of.WithGroup(name) })
}

func (h *attemptLog) derive(with func(slog.Handler) slog.Handler) slog.Handler {
	before := h.with
	derived := &attemptLog{
		Handler: with(h.Handler),
		a:       h.a,
		with:    with,
	}
	if before != nil {
		derived.with = func(of slog.Handler) slog.Handler { return with(before(of)) }
	}
	return derived
}

// keepsLog reports whether what the attempt writes is kept. An owner of an earlier release does not tell what the log
// would be of.
func (a *attempt) keepsLog() bool { return a.x.cfg.Logs != nil && a.Life != 0 }

// keptLog returns the log of an attempt that keeps one.
func (a *attempt) keptLog() *logwriters.Log {
	if l := a.kept.Load(); l != nil {
		return l
	}
	of := tasklog.Attempt{
		Shard:  uint16(a.shard),
		Life:   a.Life,
		Number: a.Number,
	}
	a.kept.CompareAndSwap(nil, a.x.cfg.Logs.Of(of))
	return a.kept.Load()
}

// discarded is Attempt.Output where no log is kept.
func discarded(slog.Level, bool) io.Writer { return io.Discard }

// output is Attempt.Output where a log is kept.
func (a *attempt) output(level slog.Level, held bool) io.Writer {
	kept := tasklog.Info
	if level >= slog.LevelError {
		kept = tasklog.Error
	}
	return a.keptLog().Output(&a.ctx, kept, held)
}

// endLog ends the log, which costs nothing where no line was written. stored is as that of logwriters.Log.End.
func (a *attempt) endLog() (stored <-chan struct{}) {
	if !a.keepsLog() || a.kept.CompareAndSwap(nil, logwriters.Ended) {
		return nil
	}
	return a.kept.Load().End()
}

// logWithin bounds the time for which an outcome waits until what programs have written is stored: whoever reads the
// log of a task that has ended is to find it whole, and an outcome that waits is lost with its node.
const logWithin = time.Second

// awaitLog ends the log and waits for a moment until what programs have written is stored, unless an outcome was
// chosen meanwhile or the session ends.
func (a *attempt) awaitLog() {
	if a.reported.Load() {
		return
	}
	stored := a.endLog()
	if stored == nil {
		return
	}
	late := time.NewTimer(logWithin)
	defer late.Stop()
	select {
	case <-stored:
	case <-late.C:
	case <-a.session.ctx.Done():
	}
}
