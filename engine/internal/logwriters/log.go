package logwriters

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"taskledger/meter"
	"taskledger/tasklog"
)

// Log is the log of one attempt. Its methods may be called concurrently.
type Log struct {
	writers *Writers // nil: the attempt has ended without a line
	of      tasklog.Attempt

	mu      sync.Mutex
	w       *tasklog.Writer // nil before the first line that has found room
	handler slog.Handler    // of w; nil before the first record
	done    chan struct{}   // closed when w has ended
	dropped uint64          // lines that have found no room
	counted uint64          // lines among those that were dropped of which the meter knows
	held    atomic.Bool     // something was written that may be held
	marks   atomic.Bool     // what is stored from now on counts as dropped, or is the mark of the end
	leave   func() bool     // keeps the end of the attempt's context from calling HoldNobody; nil before hold
	ended   bool
}

// Ended is the log of an attempt that has ended without a line.
var Ended = &Log{ended: true}

// Output returns what makes lines of what is written to it, for one goroutine at a time, as tasklog.Writer.Output
// does. What is held is so until ctx ends.
func (l *Log) Output(ctx context.Context, level tasklog.Level, held bool) io.Writer {
	return &output{
		log:   l,
		ctx:   ctx,
		level: level,
		held:  held,
	}
}

// Handle writes a record of level Info or above. with derives the handler of a logger that has attributes; nil = it
// has none. It never waits.
func (l *Log) Handle(ctx context.Context, r slog.Record, with func(slog.Handler) slog.Handler) {
	w := l.begin(lines(r.Message))
	if w == nil {
		return
	}
	l.mu.Lock()
	if l.handler == nil {
		l.handler = w.Handler()
	}
	h := l.handler
	l.mu.Unlock()
	if with != nil {
		h = with(h)
	}
	_ = h.Handle(ctx, r) // after the end of the attempt there is no log to write to
}

// lines returns how many lines a message makes.
func lines(message string) uint64 {
	return 1 + uint64(strings.Count(strings.TrimSuffix(message, "\n"), "\n"))
}

// begin returns the writer, nil where there is no room for one. n lines are dropped then.
func (l *Log) begin(n uint64) *tasklog.Writer {
	l.mu.Lock()
	if l.w == nil && !l.ended {
		l.w, l.done = l.writers.begin(l, l.dropped)
	}
	w, drops := l.w, l.w == nil && !l.ended
	if drops {
		l.dropped += n
		l.counted += n
	}
	l.mu.Unlock()
	if drops {
		l.writers.count(meter.LogLinesDropped, n)
	}
	return w
}

// countDropped has the meter count the lines that a writer has dropped since it was called last.
func (l *Log) countDropped(w *tasklog.Writer) {
	l.mu.Lock()
	n := w.Dropped() - l.counted
	l.counted += n
	l.mu.Unlock()
	l.writers.count(meter.LogLinesDropped, n)
}

// hold lets programs be held until ctx ends.
func (l *Log) hold(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.held.Swap(true) {
		return
	}
	l.leave = context.AfterFunc(ctx, l.w.HoldNobody)
}

// End ends the log. What is left of it is stored in the background. If programs wrote to it, and the store is not
// known to be away, stored is closed when that is over; else it is nil. Calls after the first return the same.
func (l *Log) End() (stored <-chan struct{}) {
	if l == Ended {
		return nil
	}
	if w := l.close(); w != nil {
		l.countDropped(w) // also what was dropped since it ended
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leave != nil {
		l.leave()
	}
	if !l.held.Load() || l.writers.to.away() {
		return nil
	}
	return l.done
}

// close takes no more lines, and returns the writer, if the log has one and was not closed before.
func (l *Log) close() *tasklog.Writer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = true
	if l.w != nil {
		l.w.Close()
	} else if l.dropped > 0 {
		l.writers.lost(l, l.dropped)
	}
	return l.w
}

// output implements Log.Output.
type output struct {
	log   *Log
	ctx   context.Context
	level tasklog.Level
	held  bool
	to    io.Writer // nil before the first line that has found room
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if o.to == nil {
		w := o.log.begin(max(uint64(bytes.Count(p, []byte{'\n'})), 1))
		if w == nil {
			return o.without(p)
		}
		if o.held {
			o.log.hold(o.ctx)
		}
		o.to = w.Output(o.level, o.held)
	}
	return o.to.Write(p)
}

// without discards what no writer takes.
func (o *output) without(p []byte) (int, error) {
	o.log.mu.Lock()
	defer o.log.mu.Unlock()
	if o.log.ended {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}
