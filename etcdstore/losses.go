package etcdstore

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/events"
	"taskledger/store"
)

// GiveUp is described in store.Losses.
func (s *Store) GiveUp(ctx context.Context, l store.Loss) error {
	err := s.checkShard(l.Shard)
	if err == nil {
		_, err = s.transact(ctx, nil, []clientv3.Op{put(s.keys.loss(l.Shard), encodeLoss(l))}, nil)
	}
	if err != nil {
		return fmt.Errorf("give up what followed entry %d of shard %d: %w", l.Entry, l.Shard, err)
	}
	return nil
}

// Loss is described in store.Losses.
func (s *Store) Loss(ctx context.Context, shard int) (store.Loss, error) {
	resp, err := s.get(ctx, s.keys.loss(shard))
	if err != nil {
		return store.Loss{}, fmt.Errorf("read what was given up of shard %d: %w", shard, err)
	}
	if len(resp.Kvs) == 0 {
		return store.Loss{}, nil
	}
	l, err := decodeLoss(resp.Kvs[0].Value)
	if err != nil {
		l = store.Loss{}
		err = fmt.Errorf("read what was given up of shard %d: %w: %w", shard, events.ErrDamaged, err)
	}
	l.Shard, l.Revision = shard, resp.Kvs[0].ModRevision
	return l, err
}

// Recover is described in store.Losses.
func (s *Store) Recover(
	ctx context.Context,
	o store.Ownership,
	after store.Head,
	entry []byte,
	l store.Loss,
	left store.SnapshotPointer,
) (int64, error) {
	wrap := func(err error) error {
		return fmt.Errorf("record in entry %d of shard %d what was lost: %w", after.Number+1, o.Shard, err)
	}
	if l.Revision <= 0 || l.Shard != o.Shard {
		return 0, wrap(fmt.Errorf("%w: no loss of the shard", store.ErrRefused)) // revision 0 would compare equal to absence
	}
	given := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(s.keys.loss(o.Shard)), "=", l.Revision)}
	also := []clientv3.Op{clientv3.OpDelete(s.keys.loss(o.Shard))}
	if left.Revision != 0 {
		pointer := s.keys.pointer(o.Shard)
		given = append(given, clientv3.Compare(clientv3.ModRevision(pointer), "=", left.Revision))
		if len(left.Kept) > 0 {
			also = append(also, put(pointer, encodePointer(left.Kept)))
		} else {
			also = append(also, clientv3.OpDelete(pointer))
		}
	}
	rev, err := s.append(ctx, o, after, entry, given, also)
	if err != nil {
		return 0, wrap(err)
	}
	return rev, nil
}

// Forget is described in store.Losses.
func (s *Store) Forget(ctx context.Context, l store.Loss) error {
	if l.Revision <= 0 {
		return fmt.Errorf("forget what was given up of shard %d: %w: no loss", l.Shard, store.ErrRefused)
	}
	key := s.keys.loss(l.Shard)
	_, err := s.transact(ctx,
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", l.Revision)},
		[]clientv3.Op{clientv3.OpDelete(key)}, nil)
	if err != nil {
		return fmt.Errorf("forget what was given up of shard %d: %w", l.Shard, err)
	}
	return nil
}
