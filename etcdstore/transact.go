package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taskledger/store"
)

const (
	minPause     = 10 * time.Millisecond
	maxPause     = 250 * time.Millisecond
	readAttempts = 3 // one for each member of the usual cluster
)

var errClosed = errors.New("etcd client is closed")

// transact sends the transaction, the same each time, until its outcome is known. It fails with store.ErrRefused when
// etcd refused the only copy, with store.ErrSessionEnded when the lease that a put names is gone, and otherwise only
// when ctx or the client ended while the outcome was unknown: with store.ErrFull when etcd last said so.
func (s *Store) transact(
	ctx context.Context,
	compare []clientv3.Cmp,
	then, otherwise []clientv3.Op,
) (*clientv3.TxnResponse, error) {
	op := clientv3.OpTxn(fromBase(s.meta.base, compare), then, otherwise)
	var resp clientv3.OpResponse
	err := s.resend(ctx, func(ctx context.Context) (err error) {
		resp, err = s.client.Do(ctx, op)
		return err
	})
	if err != nil {
		return nil, err
	}
	txnOverBase(s.meta.base, resp.Txn())
	return resp.Txn(), nil
}

// found returns the key that the i-th operation read, or nil.
func found(resp *clientv3.TxnResponse, i int) *mvccpb.KeyValue {
	if kvs := resp.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// resend calls send, bounded by the request time-out, until the outcome of the write is known.
func (s *Store) resend(ctx context.Context, send func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("nothing was sent: %w", err) // a server in this process may do it all the same
	}
	pause := minPause
	full := false // said the last answer; that ctx has ended is none
	for unknown := false; ; unknown = true {
		err := s.bounded(ctx, send)
		if ctx.Err() == nil {
			full = errors.Is(err, rpctypes.ErrNoSpace)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			// Leases never come back, and take their keys with them: whatever earlier copies did is undone.
			return fmt.Errorf("%w: %w", store.ErrSessionEnded, err)
		case tooLarge(err) && !unknown:
			return fmt.Errorf("%w: %w: %w", store.ErrRefused, store.ErrTooLarge, err)
		case refused(err) && !unknown:
			return fmt.Errorf("%w: %w", store.ErrRefused, err)
		}
		if ended := s.wait(ctx, pause); ended != nil {
			err = fmt.Errorf("outcome unknown: %w; last answer: %w", ended, err)
			if full {
				err = fmt.Errorf("%w: %w", store.ErrFull, err)
			}
			return err
		}
		if !unknown {
			s.log.WarnContext(ctx, "etcd gave no definite answer, sending again", "err", err)
		}
		pause = min(2*pause, maxPause)
	}
}

// bounded makes one request, which ends with the client: etcd's own retries would not.
func (s *Store) bounded(ctx context.Context, send func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	defer context.AfterFunc(s.client.Ctx(), cancel)()
	return s.tries.because(send(ctx))
}

// get reads linearizably. A member that does not answer in time costs one of a few attempts.
func (s *Store) get(
	ctx context.Context,
	key string,
	opts ...clientv3.OpOption,
) (resp *clientv3.GetResponse, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err // a server in this process may answer all the same
	}
	err = s.ask(ctx, func(ctx context.Context) (err error) {
		resp, err = s.client.Get(ctx, key, opts...)
		return err
	})
	if err == nil {
		overBase(s.meta.base, resp.Header, resp.Kvs)
	}
	return resp, err
}

// ask calls send, which changes nothing, a few times until there is an answer. Without one it fails with
// store.ErrUnavailable.
func (s *Store) ask(ctx context.Context, send func(context.Context) error) error {
	var err error
	for range readAttempts {
		if err = s.bounded(ctx, send); err == nil || refused(err) {
			return err
		}
		if ended := s.wait(ctx, minPause); ended != nil {
			return ended
		}
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// wait pauses for about d. It fails when ctx or the client has ended.
func (s *Store) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.client.Ctx().Done():
		return errClosed
	case <-timer.C:
		return nil
	}
}

// refused reports whether the error says of the request itself that etcd did not and would not apply it. A full store
// is no such error: etcd may answer so although it has applied the request.
func refused(err error) bool {
	return errors.Is(err, rpctypes.ErrTooManyOps) || errors.Is(err, rpctypes.ErrPermissionDenied) || tooLarge(err)
}

// tooLarge reports that etcd refused a request for its size.
func tooLarge(err error) bool {
	// The request is larger than the connection takes, at either end, or than etcd is told to take.
	return errors.Is(err, rpctypes.ErrRequestTooLarge) ||
		status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "message larger than max")
}

// put is clientv3.OpPut without copies of the value, which must not be changed any more: an etcd in the same process
// keeps it.
func put(key string, value []byte, opts ...clientv3.OpOption) clientv3.Op {
	op := clientv3.OpPut(key, "", opts...)
	op.WithValueBytes(value)
	return op
}
