package natsbus

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/nats-io/nats.go"
)

// own makes a connection that belongs to the bus.
func (b *Bus) own(cfg Config) error {
	closed := make(chan struct{})
	var err error
	b.conn, err = connect(b.ctx, cfg, b.retried,
		nats.ConnectHandler(b.connected),
		nats.ReconnectHandler(b.connected),
		nats.DisconnectErrHandler(b.disconnected),
		nats.ErrorHandler(b.failed),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
	)
	b.shut = func() {
		b.conn.Close()
		<-closed // and with it every callback before
	}
	return err
}

// share adds the bus's handlers to those of a connection that belongs to the caller, and returns what takes them away.
func (b *Bus) share(conn *nats.Conn) (restore func()) {
	disconnect, reconnect := conn.DisconnectErrHandler(), conn.ReconnectHandler()
	failure, closed := conn.ErrorHandler(), conn.ClosedHandler()
	conn.SetDisconnectErrHandler(func(c *nats.Conn, err error) {
		b.disconnected(c, err)
		if disconnect != nil {
			disconnect(c, err)
		}
	})
	conn.SetReconnectHandler(after(b.connected, reconnect))
	conn.SetClosedHandler(after(b.gone, closed))
	conn.SetErrorHandler(func(c *nats.Conn, sub *nats.Subscription, err error) {
		b.failed(c, sub, err)
		if failure != nil {
			failure(c, sub, err)
		}
	})
	b.link.report(conn.IsConnected()) // last: a change from here on calls a handler
	return func() {
		conn.SetDisconnectErrHandler(disconnect)
		conn.SetReconnectHandler(reconnect)
		conn.SetErrorHandler(failure)
		conn.SetClosedHandler(closed)
	}
}

// after returns a handler that calls first and then next, if there is one.
func after(first, next nats.ConnHandler) nats.ConnHandler {
	return func(c *nats.Conn) {
		first(c)
		if next != nil {
			next(c)
		}
	}
}

func (b *Bus) connected(c *nats.Conn) {
	level := slog.LevelInfo
	if unreachable, lost := b.unreachable.Swap(false), b.lost.Swap(false); unreachable || lost {
		level = slog.LevelWarn // whoever was told of the outage is told of its end
	}
	b.refused.Store(nil)                                                  // permissions may be others by now
	b.log.Log(b.ctx, level, "bus connected", "server", c.ConnectedAddr()) // the URL may hold a token
	b.link.report(true)
}

func (b *Bus) disconnected(_ *nats.Conn, err error) {
	if err != nil { // nil: it is being closed
		b.lost.Store(true)
		b.log.Warn("bus connection lost, reconnecting", "err", err)
	}
	b.link.report(false)
}

// gone follows the end of a connection that belongs to the caller.
func (b *Bus) gone(*nats.Conn) { b.link.report(false) }

// retried logs the first failure of an outage as a warning, and as an error if the servers refuse who asks:
// attempts go on for ever, every second or two.
func (b *Bus) retried(err error) {
	if b.ctx.Err() != nil {
		return // the bus is being closed
	}
	level := slog.LevelDebug
	if !errors.Is(err, errLater) && b.unreachable.CompareAndSwap(false, true) {
		level = slog.LevelWarn
		if denied(err) {
			level = slog.LevelError
		}
	}
	b.log.Log(b.ctx, level, "bus cannot connect, retrying", "err", err)
}

// denied reports a refusal of credentials. The client tells one that it meets while it connects as text alone.
func denied(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || strings.EqualFold(err.Error(), nats.ErrAuthorization.Error())
}

// failed logs errors that the client reports only here: dropped messages, refused permissions, protocol errors.
func (b *Bus) failed(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		b.overruns.Add(1)
		b.log.Warn("messages dropped: handler too slow", "subject", subjectOf(sub))
		b.link.missed()
		return
	}
	if !b.link.up.Load() {
		b.retried(err)
		return
	}
	if errors.Is(err, nats.ErrPermissionViolation) {
		refused := err.Error()
		if before := b.refused.Swap(&refused); before != nil && *before == refused {
			return // every message would be told
		}
	}
	b.log.Error("bus error", "subject", subjectOf(sub), "err", err)
}

func subjectOf(sub *nats.Subscription) string {
	if sub == nil {
		return ""
	}
	return sub.Subject
}
