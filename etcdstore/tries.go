package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taskledger/store"
)

// tryPause is the time between two tries.
const tryPause = 50 * time.Millisecond

// ErrDenied reports that etcd does not know the user, or does not let it use the cluster's keys.
var ErrDenied = errors.New("etcd denies access")

// tries makes the single tries of requests while a store is opened, and remembers why the last request met no server.
// The client alone would wait for a connection until the request times out, and then report nothing but that.
type tries struct {
	ended atomic.Bool
	last  atomic.Pointer[error] // why the last one that met no server did not
}

// errTLS ends a request for good.
type errTLS struct{ error }

// intercept implements grpc.UnaryClientInterceptor. Nothing that Open sends does harm when it is sent again.
func (t *tries) intercept(
	ctx context.Context,
	method string,
	req, reply any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
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

// note remembers why a request met no server: the client reports to its callers nothing but that the time was over.
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

// because adds the reason why no server was met to an error that says nothing but that the time was over.
func (t *tries) because(err error) error {
	if last := t.last.Load(); last != nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", err, *last)
	}
	return err
}

// end leaves later tries to the client.
func (t *tries) end() { t.ended.Store(true) }

// explain adds what the client does not report to the error with which a store could not be opened.
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

// timedOut reports whether an error of the client says that the time was over.
func timedOut(err error) bool {
	code := status.Code(err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		code == codes.DeadlineExceeded || code == codes.Canceled
}
