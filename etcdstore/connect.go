package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"taskledger/store"
)

// tryPause is the time between two tries.
const tryPause = 50 * time.Millisecond

// ErrDenied reports that etcd does not know the user, or does not let it use the cluster's keys.
var ErrDenied = errors.New("etcd denies access")

// anyEndpoint is what a client that dials by itself takes its server for. Whatever a path holds, it never meets the parser
// of the client's targets.
const anyEndpoint = "http://localhost"

// NewClient returns a client that reaches etcd as a Store of that configuration does, for who needs what a Store does not
// do. The caller closes it. It does not wait for a connection unless it logs in.
func NewClient(ctx context.Context, cfg Config) (*clientv3.Client, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if cfg.Client != nil {
		return nil, errors.New("etcd: want endpoints or a dialer")
	}
	var opening tries
	opening.end()
	client, err := connect(ctx, cfg, &opening)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", opening.explain(err, cfg))
	}
	return client, nil
}

// dialer returns the endpoints to tell the client, and what dials instead of it, or nil.
func dialer(cfg Config) (endpoints []string, dial func(context.Context, string) (net.Conn, error)) {
	if cfg.Dial != nil {
		return []string{anyEndpoint}, func(ctx context.Context, _ string) (net.Conn, error) { return cfg.Dial(ctx) }
	}
	if path, socket := socketPath(cfg.Endpoints[0]); socket {
		return []string{anyEndpoint}, func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	return cfg.Endpoints, nil
}

// dialName is what errors call the server that is dialled instead of by the client; "" where the client dials.
func dialName(cfg Config) string {
	if cfg.Dial != nil {
		return cmp.Or(cfg.DialName, "the server of the dialer")
	}
	if len(cfg.Endpoints) > 0 {
		if _, socket := socketPath(cfg.Endpoints[0]); socket {
			return cfg.Endpoints[0]
		}
	}
	return ""
}

// connect makes a client that finds a dead member within 13 s at worst; requests move on after their own time-out. With
// a user it logs in, which ctx bounds.
func connect(ctx context.Context, cfg Config, tries *tries) (*clientv3.Client, error) {
	living, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	options := []grpc.DialOption{
		// gRPC's own schedule waits up to 2 minutes before it tries a member that was away.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithChainUnaryInterceptor(tries.intercept),
	}
	if cfg.Authorities != nil {
		options = append(options, grpc.WithTransportCredentials(renewed{credentials.NewTLS(cfg.TLS), cfg}))
	}
	endpoints, dial := dialer(cfg)
	if dial != nil {
		options = append(options, grpc.WithContextDialer(dial))
	}
	client, err := clientv3.New(clientv3.Config{
		Context:              living,
		Endpoints:            endpoints,
		TLS:                  cfg.TLS,
		Username:             cfg.Username,
		Password:             cfg.Password,
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions:          options,
		Logger:               zap.NewNop(),
	})
	if !stop() {
		if err == nil {
			_ = client.Close() // tells that its context ended
		}
		return nil, ctx.Err()
	}
	if err != nil {
		end()
		return nil, err
	}
	return client, nil
}

// renewed is TLS whose authorities are those of the moment of each handshake.
type renewed struct {
	credentials.TransportCredentials
	cfg Config
}

// ClientHandshake implements credentials.TransportCredentials.
func (r renewed) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	roots, err := r.cfg.Authorities()
	if err != nil {
		return nil, nil, err
	}
	now := r.cfg.TLS.Clone()
	now.RootCAs = roots
	return credentials.NewTLS(now).ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (r renewed) Clone() credentials.TransportCredentials {
	return renewed{r.TransportCredentials.Clone(), r.cfg}
}

// tries makes the single tries of requests while a store is opened, and keeps why later ones met no server. The
// client alone would wait for a connection until the request times out, and then tell nothing but that.
type tries struct {
	ended atomic.Bool
	last  atomic.Pointer[error] // why the last one that met no server did not
}

// errTLS ends a request for good.
type errTLS struct{ error }

// intercept implements grpc.UnaryClientInterceptor. Nothing that Open sends does harm when it is sent again.
func (t *tries) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if t.ended.Load() { // certificates may be mended while requests wait
		err := invoke(ctx, method, req, reply, conn, opts...)
		t.note(err)
		return err
	}
	opts = append(opts, grpc.WaitForReady(false))
	for {
		err := invoke(ctx, method, req, reply, conn, opts...)
		if status.Code(err) != codes.Unavailable {
			return err
		}
		reason := errors.New(status.Convert(err).Message())
		t.last.Store(&reason)
		if strings.Contains(reason.Error(), "tls: ") {
			return errTLS{reason}
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-time.After(tryPause):
		}
	}
}

// note keeps why a request met no server: the client tells its callers nothing but that the time was over.
func (t *tries) note(err error) {
	if err == nil {
		if t.last.Load() != nil {
			t.last.Store(nil)
		}
		return
	}
	if why := status.Convert(err).Message(); strings.Contains(why, "connection error") {
		reason := errors.New(why)
		t.last.Store(&reason)
	}
}

// because adds to an error that tells nothing but that the time was over why no server was met.
func (t *tries) because(err error) error {
	if last := t.last.Load(); last != nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", err, *last)
	}
	return err
}

// end lets the client do as it likes.
func (t *tries) end() { t.ended.Store(true) }

// explain adds to why a store could not be opened what the client does not tell.
func (t *tries) explain(err error, cfg Config) error {
	user := "a client without user"
	switch {
	case cfg.Username != "":
		user = fmt.Sprintf("user %q", cfg.Username)
	case cfg.TLS != nil && (len(cfg.TLS.Certificates) > 0 || cfg.TLS.GetClientCertificate != nil):
		user = "the user whom the certificate's common name names"
	}
	for _, denied := range []error{rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrPermissionDenied} {
		if errors.Is(err, denied) {
			return fmt.Errorf("%w to %s: %w", ErrDenied, user, err)
		}
	}
	if _, ok := errors.AsType[errTLS](err); ok {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if !timedOut(err) {
		return err
	}
	if last := t.last.Load(); last != nil {
		return fmt.Errorf("%w: %w: %w", store.ErrUnavailable, err, *last)
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// timedOut knows the ways in which the client tells so.
func timedOut(err error) bool {
	code := status.Code(err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		code == codes.DeadlineExceeded || code == codes.Canceled
}
