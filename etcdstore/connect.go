package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
)

// anyEndpoint stands for the server of a dialer in the client's configuration, so that the path of a socket never
// meets the parser of the client's targets.
const anyEndpoint = "http://localhost"

// NewClient returns a client that reaches etcd as a Store of that configuration does, for callers who need more of
// etcd than a Store offers. The caller closes it. It does not wait for a connection unless it logs in.
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

// dialName returns the name in errors of the server that a dialer reaches; "" where the client dials.
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

// connect makes a client that finds a dead member within 13 s at worst; requests move on after their own time-out.
// With a user it logs in, which ctx bounds.
func connect(ctx context.Context, cfg Config, tries *tries) (*clientv3.Client, error) {
	living, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	options := []grpc.DialOption{
		// gRPC's own schedule waits up to 2 minutes before it tries a member that was away.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay:  100 * time.Millisecond,
				Multiplier: 1.6,
				Jitter:     0.2,
				MaxDelay:   2 * time.Second,
			},
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

// renewed asks for the authorities of TLS anew at each handshake.
type renewed struct {
	credentials.TransportCredentials
	cfg Config
}

// ClientHandshake implements credentials.TransportCredentials.
func (r renewed) ClientHandshake(
	ctx context.Context,
	authority string,
	conn net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
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
