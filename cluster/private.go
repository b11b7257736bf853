package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"

	"taskledger/etcdstore"
	"taskledger/internal/connection"
)

// keepPrivate returns connection.ErrNotPrivate where others can write etcd, as far as this process can tell, and has
// the store go on checking.
func (c Config) keepPrivate(store *etcdstore.Config) error {
	if shows(c.EtcdTLS) {
		return nil
	}
	err := fmt.Errorf("%w: want TLS with a client certificate, a user of etcd, or a socket (unix:PATH)",
		connection.ErrNotPrivate)
	if path, socket := socketPath(c.Etcd[0]); socket && len(c.Etcd) == 1 {
		if path, err = filepath.Abs(path); err != nil { // else @NAME would be a socket in no directory
			return fmt.Errorf("socket of etcd: %w", err)
		}
		if err = ownSocket(path); err == nil || errors.Is(err, fs.ErrNotExist) {
			store.DialName = c.Etcd[0]
			store.Endpoints, store.Dial = nil, logRefused(store.Log, func(ctx context.Context) (net.Conn, error) {
				if err := ownSocket(path); err != nil {
					return nil, err
				}
				return new(net.Dialer).DialContext(ctx, "unix", path)
			})
			return nil
		}
	}
	if c.EtcdUser != "" {
		store.Authenticated, err = true, nil
	}
	return err
}

// ownSocket refuses a socket in a directory that others may enter.
func ownSocket(path string) error {
	err := closedToOthers(filepath.Dir(path), me(), "the user of this process")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w by its socket: %w", connection.ErrNotPrivate, err)
	}
	return err
}

// shows reports whether a client shows a certificate.
func shows(c *tls.Config) bool {
	return c != nil && (len(c.Certificates) > 0 || c.GetClientCertificate != nil)
}

// socketPath returns the path in an endpoint that is a socket, as etcdstore reads it.
func socketPath(endpoint string) (path string, socket bool) {
	if path, socket = strings.CutPrefix(endpoint, "unix://"); socket {
		return path, true
	}
	return strings.CutPrefix(endpoint, "unix:")
}

// logRefused logs when dials begin to be refused: the client of etcd keeps why one failed to itself.
func logRefused(
	log *slog.Logger,
	dial func(context.Context) (net.Conn, error),
) func(context.Context) (net.Conn, error) {
	if log == nil {
		return dial
	}
	var refused atomic.Bool
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		is := errors.Is(err, connection.ErrNotPrivate)
		if before := refused.Swap(is); is && !before {
			log.ErrorContext(ctx, "servers refused", "err", err)
		}
		return conn, err
	}
}
