package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// Join is described in store.Sessions. A lease whose grant was not answered, or whose key could not be put, lapses by
// itself.
func (s *Store) Join(ctx context.Context, info store.NodeInfo, ttl time.Duration) (store.Session, error) {
	lease, err := s.grant(ctx, ttl)
	if err != nil {
		return store.Session{}, fmt.Errorf("grant lease: %w", err)
	}
	session := store.Session{ID: store.SessionID(info.Name, draw(store.DrawnInID)), Lease: int64(lease)}
	for session.Revision == 0 {
		if err := s.createNode(ctx, &session, info); err != nil {
			return store.Session{}, fmt.Errorf("create node key %s: %w", session.ID, err)
		}
	}
	return session, nil
}

// createNode creates the node key of a session, unless info.Reads lacks something of what is written. The session
// has no revision after it when more has been written meanwhile.
func (s *Store) createNode(ctx context.Context, session *store.Session, info store.NodeInfo) error {
	written, revision, err := s.readWritten(ctx)
	if err != nil {
		return err
	}
	if lacks := info.Reads.Lacks(written); lacks != "" {
		return fmt.Errorf("%w: it cannot read %s", store.ErrOutdated, lacks)
	}
	key := s.keys.node(session.ID)
	resp, err := s.transact(ctx,
		[]clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(key), "=", 0),
			clientv3.Compare(clientv3.ModRevision(s.keys.written()), "=", revision),
		},
		[]clientv3.Op{put(key, encodeNode(info), clientv3.WithLease(clientv3.LeaseID(session.Lease)))},
		[]clientv3.Op{clientv3.OpGet(key, clientv3.WithKeysOnly())})
	switch {
	case err != nil:
		return err
	case resp.Succeeded:
		session.Revision = resp.Header.Revision
	case found(resp, 0) != nil:
		// The id is known to the caller alone, so an earlier copy made the key.
		session.Revision = found(resp, 0).CreateRevision
	}
	return nil
}

func (s *Store) grant(ctx context.Context, ttl time.Duration) (id clientv3.LeaseID, err error) {
	seconds := int64((ttl + time.Second - 1) / time.Second)
	err = s.resend(ctx, func(ctx context.Context) error {
		resp, err := s.client.Grant(ctx, seconds)
		if err == nil {
			id = resp.ID
		}
		return err
	})
	return id, err
}

// Renew is described in store.Sessions.
func (s *Store) Renew(ctx context.Context, session store.Session) error {
	_, err := s.client.KeepAliveOnce(ctx, clientv3.LeaseID(session.Lease))
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return fmt.Errorf("renew session %s: %w", session.ID, store.ErrSessionEnded)
	case err != nil:
		return fmt.Errorf("renew session %s: %w", session.ID, s.tries.because(err))
	}
	return nil
}

// Update is described in store.Sessions.
func (s *Store) Update(ctx context.Context, session store.Session, info func() store.NodeInfo) error {
	for {
		done, err := s.update(ctx, session, info)
		if err != nil {
			return fmt.Errorf("update node key %s: %w", session.ID, err)
		}
		if done {
			return nil
		}
	}
}

// update replaces the value of the node key by compare, so that a late copy cannot undo a later update. Each copy
// says what is the case when it is sent: a full etcd may refuse for long, and the value tells the time. It reports
// false when the key has changed since it was read, be it by an earlier copy.
func (s *Store) update(ctx context.Context, session store.Session, info func() store.NodeInfo) (bool, error) {
	key := s.keys.node(session.ID)
	read, err := s.get(ctx, key)
	if err != nil {
		return false, err
	}
	if len(read.Kvs) == 0 || read.Kvs[0].CreateRevision != session.Revision || read.Kvs[0].Lease == 0 {
		return false, store.ErrSessionEnded // for ever: others may have taken a key without a lease for the end already
	}
	unchanged := fromBase(s.meta.base, []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(key), "=", read.Kvs[0].ModRevision),
	})
	var resp clientv3.OpResponse
	err = s.resend(ctx, func(ctx context.Context) (err error) {
		write := put(key, encodeNode(info()), clientv3.WithLease(clientv3.LeaseID(session.Lease)))
		resp, err = s.client.Do(ctx, clientv3.OpTxn(unchanged, []clientv3.Op{write}, nil))
		return err
	})
	return err == nil && resp.Txn().Succeeded, err
}

// Leave is described in store.Sessions.
func (s *Store) Leave(ctx context.Context, session store.Session) error {
	err := s.resend(ctx, func(ctx context.Context) error {
		_, err := s.client.Revoke(ctx, clientv3.LeaseID(session.Lease))
		return err
	})
	if err != nil && !errors.Is(err, store.ErrSessionEnded) {
		return fmt.Errorf("revoke lease of session %s: %w", session.ID, err)
	}
	return nil
}
