package natsbus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// pingEvery and pingsMissed find a half-open connection within 30 s.
	pingEvery   = 10 * time.Second
	pingsMissed = 2
	// dialTimeout bounds the dial of one server; its greeting may take as long again.
	dialTimeout = 2 * time.Second
	// writeTimeout bounds how long a publisher can wait for a network that takes nothing more.
	writeTimeout = time.Second
	// firstRetry and slowestRetry are the pauses after every known server has been tried.
	firstRetry   = 100 * time.Millisecond
	slowestRetry = 2 * time.Second
)

// errLater ends the attempt that nats.Connect makes while its caller waits.
var errLater = errors.New("connecting in the background")

// dialer opens the sockets of one connection. The first attempt fails at once, so that Open does not wait for the
// network; the client then goes on in the background, without a pause.
type dialer struct {
	ctx    context.Context // ends every dial under way
	failed func(error)     // hears of refused greetings
	dial   func(context.Context) (net.Conn, error)
	conn   atomic.Pointer[nats.Conn] // nil until nats.Connect has returned
	paused atomic.Bool
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	if d.conn.Load() == nil {
		return nil, errLater
	}
	ctx, cancel := context.WithTimeout(d.ctx, dialTimeout)
	defer cancel()
	if d.dial != nil {
		return d.dial(ctx)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// pause returns how long to wait before the attempt-th round through all servers since the connection was lost,
// half of it at random: the members of a cluster lose their server at the same moment.
func (d *dialer) pause(attempt int) time.Duration {
	if d.paused.CompareAndSwap(false, true) {
		return 0
	}
	// No handler of the client's hears of a server that answers and then refuses, as long as none has accepted.
	if conn := d.conn.Load(); conn != nil {
		if err := conn.LastError(); err != nil {
			d.failed(err)
		}
	}
	longest := min(firstRetry<<min(attempt-1, 10), slowestRetry)
	return longest/2 + rand.N(longest/2)
}

// connect returns a connection that is made, and made again, for ever. It does not wait for the network.
// Attempts that fail are told to failed.
func connect(ctx context.Context, cfg Config, failed func(error), handlers ...nats.Option) (*nats.Conn, error) {
	d := &dialer{ctx: ctx, failed: failed, dial: cfg.Dial}
	opts := nats.GetDefaultOptions()
	opts.Servers = cfg.URLs
	opts.Name = cfg.Name
	opts.InProcessServer = cfg.InProcess
	opts.Timeout = dialTimeout
	opts.CustomDialer = d
	opts.SkipHostLookup = true // it would make Open wait; the dialer tries all addresses of a host
	opts.RetryOnFailedConnect = true
	opts.MaxReconnect = -1
	opts.IgnoreAuthErrorAbort = true // credentials may be mended on the server
	opts.CustomReconnectDelayCB = d.pause
	opts.ReconnectErrCB = func(_ *nats.Conn, err error) { failed(err) }
	opts.ReconnectBufSize = -1 // a hint that comes late is worth nothing
	opts.PingInterval = pingEvery
	opts.MaxPingsOut = pingsMissed
	opts.FlusherTimeout = writeTimeout
	opts.ReconnectOnFlusherError = true // what could not be written is lost; a reconnect makes that known
	if cfg.TLS != nil {
		handlers = append(handlers, nats.Secure(cfg.TLS))
	}
	if cfg.Authorities != nil {
		opts.RootCAsCB = cfg.Authorities
	}
	if cfg.Creds != "" {
		handlers = append(handlers, nats.UserCredentials(cfg.Creds))
	}
	if cfg.NKey != "" {
		sign, err := nats.NkeyOptionFromSeed(cfg.NKey)
		if err != nil {
			return nil, fmt.Errorf("nkey: %w", err)
		}
		handlers = append(handlers, sign)
	}
	for _, set := range handlers {
		if err := set(&opts); err != nil {
			return nil, err
		}
	}
	conn, err := opts.Connect()
	d.conn.Store(conn)
	return conn, err
}
