package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"taskledger/store"
)

const (
	rewatchPause = 100 * time.Millisecond // between a lost watch and the next read
	refusedPause = 2 * time.Second        // between a refused read and the next, where nobody else could go on
	mailboxPage  = 16                     // batches or answers, of up to 512 KiB each, in one reply
)

var (
	errStopped = errors.New("consumer stopped")
	errWatch   = errors.New("watch ended")
)

// persist calls step again and again, pausing after errors, until ctx ends or the consumer stopped, which is no error,
// or going on is in vain: etcd refuses for good, the client is closed, or what comes next was trimmed.
func (s *Store) persist(ctx context.Context, what string, step func() error) error {
	for {
		err := step()
		switch {
		case ctx.Err() != nil || errors.Is(err, errStopped):
			return nil
		case err == nil:
			continue
		case refused(err) || errors.Is(err, store.ErrTrimmed) || s.client.Ctx().Err() != nil:
			return fmt.Errorf("%s: %w", what, err)
		}
		s.log.DebugContext(ctx, "reading again", "what", what, "err", err)
		if s.wait(ctx, rewatchPause) != nil {
			continue // step reports it
		}
	}
}

// insist is persist that goes on when etcd refuses, and says so once: what a role may read can be changed back, and
// without its mailbox and the membership a process is of no use.
func (s *Store) insist(ctx context.Context, what string, step func() error) error {
	said := false
	return s.persist(ctx, what, func() error {
		err := step()
		if !refused(err) {
			said = false
			return err
		}
		if !said {
			s.log.ErrorContext(ctx, "etcd refuses what must be read; it is asked again", "what", what, "err", err)
		}
		said = true
		_ = s.wait(ctx, refusedPause) // persist reports its end
		return errWatch
	})
}

// watch calls each with the changes of the keys from first to before end, from revision rev on, which must not be
// in the future of the read that it continues by more than one. It returns the first error of each or of the watch.
//
// Each watch has a stream of its own: the client sends watches of equal metadata over one stream, which keeps the
// log-in of the time when it was opened as long as any watch holds it, and whose goroutine may hang for good where
// two of its watches end at once (etcd client 3.7.3).
func (s *Store) watch(ctx context.Context, first, end string, rev int64, each func(*clientv3.Event) error) error {
	ctx = metadata.AppendToOutgoingContext(ctx, "stream", strconv.FormatUint(s.streams.Add(1), 10))
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	from := clientv3.WithRev(below(s.meta.base, rev))
	for resp := range s.client.Watch(ctx, first, clientv3.WithRange(end), from) {
		if err := resp.Err(); err != nil {
			return fmt.Errorf("watch from revision %d: %w", rev, err)
		}
		for _, ev := range resp.Events {
			if s.meta.base != 0 {
				ev = &clientv3.Event{Type: ev.Type, Kv: keyOverBase(s.meta.base, ev.Kv)}
			}
			if err := each(ev); err != nil {
				return err
			}
		}
	}
	return errWatch
}

// tail calls each with what is stored under prefix and then with every later put, until ctx ends or each fails with
// errStopped. What changes during a listing, and after a lost connection everything still stored, may come twice.
func (s *Store) tail(ctx context.Context, prefix string, each func(*mvccpb.KeyValue) error) error {
	return s.insist(ctx, "follow "+prefix, func() error {
		rev, err := s.list(ctx, prefix, each)
		if err != nil {
			return err
		}
		return s.watch(ctx, prefix, end(prefix), rev+1, func(ev *clientv3.Event) error {
			if ev.Type != clientv3.EventTypePut {
				return nil
			}
			return each(ev.Kv)
		})
	})
}

// list calls each with what is stored under prefix, page by page. Nothing that was stored at the returned revision and
// still is was missed.
func (s *Store) list(
	ctx context.Context,
	prefix string,
	each func(*mvccpb.KeyValue) error,
	opts ...clientv3.OpOption,
) (rev int64, err error) {
	opts = append(opts, clientv3.WithRange(end(prefix)), clientv3.WithLimit(mailboxPage))
	for from := prefix; ; {
		resp, err := s.get(ctx, from, opts...)
		if err != nil {
			return 0, err
		}
		if rev == 0 {
			rev = resp.Header.Revision
		}
		for _, kv := range resp.Kvs {
			if err := each(kv); err != nil {
				return 0, err
			}
			from = string(kv.Key) + "\x00"
		}
		if !resp.More {
			return rev, nil
		}
	}
}
