package embedded

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"
)

// natsLog passes on what the NATS server calls an error, and keeps what it calls fatal for whoever started it.
type natsLog struct {
	log  *slog.Logger
	last atomic.Pointer[error]
}

var _ server.Logger = (*natsLog)(nil)

// fatal returns the last fatal error, or nil.
func (l *natsLog) fatal() error {
	if err := l.last.Load(); err != nil {
		return *err
	}
	return nil
}

// withCause is an error whose text holds that of its cause already.
type withCause struct {
	error
	cause error
}

func (e *withCause) Unwrap() error { return e.cause }

// Fatalf implements server.Logger. The server writes causes as text.
func (l *natsLog) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, arg := range args {
		if cause, is := arg.(error); is {
			err = &withCause{err, cause}
		}
	}
	l.last.Store(&err)
}

// Errorf implements server.Logger.
func (l *natsLog) Errorf(format string, args ...any) {
	l.log.Error("nats: error", "err", fmt.Sprintf(format, args...))
}

// Warnf implements server.Logger.
func (l *natsLog) Warnf(string, ...any) {}

// Noticef implements server.Logger.
func (l *natsLog) Noticef(string, ...any) {}

// Debugf implements server.Logger.
func (l *natsLog) Debugf(string, ...any) {}

// Tracef implements server.Logger.
func (l *natsLog) Tracef(string, ...any) {}
