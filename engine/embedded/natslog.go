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

// Fatalf implements server.Logger.
func (l *natsLog) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
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
