// Package notice logs what operators look for, and no more of it than they can read: which nodes joined and left,
// which attempts were lost, which tasks failed for good.
package notice

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"golang.org/x/time/rate"
)

const (
	// burst bounds the records of a kind that are logged at once.
	burst = 20
	// perSecond bounds the records of a kind that follow each second.
	perSecond = 1
)

// Log limits the rate of a log. All records with the same message are a kind: those that exceed its rate are left out,
// and counted. A nil Log logs nothing.
type Log struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*kind
}

type kind struct {
	level slog.Level
	limit *rate.Limiter
	out   int64 // left out since the last record
}

// New returns a Log that writes to log.
func New(log *slog.Logger) *Log { return &Log{log: log, kinds: map[string]*kind{}} }

// Enabled reports whether anybody reads records of a level.
func (l *Log) Enabled(level slog.Level) bool {
	return l != nil && l.log.Enabled(context.Background(), level)
}

// Say logs a record, unless too many of its message came lately. The record after those that were left out gives
// their number.
func (l *Log) Say(level slog.Level, message string, args ...any) {
	if !l.Enabled(level) {
		return
	}
	l.mu.Lock()
	k := l.kind(level, message)
	if !k.limit.Allow() {
		k.out++
		l.mu.Unlock()
		return
	}
	out := k.out
	k.out = 0
	l.mu.Unlock()
	if out > 0 {
		args = append(args, "left_out", out)
	}
	l.log.Log(context.Background(), level, message, args...)
}

// Leave counts records as left out.
func (l *Log) Leave(level slog.Level, message string, n int64) {
	if n == 0 || !l.Enabled(level) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kind(level, message).out += n
}

// Flush logs how many records were left out, for each message of which no record has come since.
func (l *Log) Flush() {
	if l == nil {
		return
	}
	out := map[string]kind{}
	l.mu.Lock()
	for message, k := range l.kinds {
		if k.out > 0 && k.limit.Allow() {
			out[message], k.out = *k, 0
		}
	}
	l.mu.Unlock()
	for _, message := range slices.Sorted(maps.Keys(out)) {
		l.log.Log(context.Background(), out[message].level, "lines were left out",
			"of", message, "left_out", out[message].out)
	}
}

// kind returns the kind of a message. The caller holds the lock.
func (l *Log) kind(level slog.Level, message string) *kind {
	k := l.kinds[message]
	if k == nil {
		k = &kind{level: level, limit: rate.NewLimiter(perSecond, burst)}
		l.kinds[message] = k
	}
	return k
}

// Onset lets a trouble that goes on be logged when it begins.
type Onset struct{ began bool }

// Begins takes the outcome of one more try, and reports whether it is the first of those in a row that failed.
func (o *Onset) Begins(err error) bool {
	before := o.began
	o.began = err != nil
	return o.began && !before
}
