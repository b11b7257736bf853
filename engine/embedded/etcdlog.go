package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapInto returns a logger that passes on what etcd calls an error or worse; once it is closing, only what is
// worse. Where etcd gives up, in goroutines of its own, gaveUp is told all that etcd says, and the process panics
// with it: by default it would name no file, or end without a word.
func zapInto(log *slog.Logger, closing *atomic.Bool, gaveUp func(problem string)) *zap.Logger {
	return zap.New(errorCore{log, closing}, zap.WithFatalHook(panicHook{gaveUp}), zap.WithPanicHook(panicHook{gaveUp}))
}

// panicHook implements zapcore.CheckWriteHook.
type panicHook struct{ gaveUp func(problem string) }

// OnWrite panics.
func (h panicHook) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	problem := fmt.Sprint("etcd: ", e.Message, " ", attributes(fields))
	h.gaveUp(problem)
	panic(problem)
}

// errorCore implements zapcore.Core.
type errorCore struct {
	log     *slog.Logger
	closing *atomic.Bool // what etcd says while it is being closed is no error
}

// Enabled implements zapcore.LevelEnabler.
func (c errorCore) Enabled(level zapcore.Level) bool {
	return level > zapcore.ErrorLevel || level == zapcore.ErrorLevel && !c.closing.Load()
}

// With implements zapcore.Core.
func (c errorCore) With(fields []zapcore.Field) zapcore.Core {
	return errorCore{c.log.With(attributes(fields)...), c.closing}
}

// Check implements zapcore.Core.
func (c errorCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c errorCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.log.With(attributes(fields)...).Log(context.Background(), slog.LevelError, "etcd: "+e.Message)
	return nil
}

// Sync implements zapcore.Core.
func (c errorCore) Sync() error { return nil }

// attributes renders zap fields as slog key-value pairs.
func attributes(fields []zapcore.Field) []any {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(values)
	}
	var pairs []any
	for _, key := range slices.Sorted(maps.Keys(values.Fields)) {
		pairs = append(pairs, key, values.Fields[key])
	}
	return pairs
}
