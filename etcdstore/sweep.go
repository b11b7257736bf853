package etcdstore

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// removeRanges bounds the ranges that one request deletes: etcd takes 128 operations by default.
const removeRanges = 100

// SweepMailboxes is described in store.Sweeper. It counts what it knows to have removed itself.
func (s *Store) SweepMailboxes(ctx context.Context, before int64) (swept int, revision int64, err error) {
	now, err := s.get(ctx, s.keys.meta(), clientv3.WithKeysOnly())
	if err != nil {
		return 0, 0, fmt.Errorf("read the present revision: %w", err)
	}
	if before <= 0 {
		return 0, now.Header.Revision, nil
	}
	for _, prefix := range []string{s.keys.mailbox(), s.keys.allAnswers()} {
		_, err := s.list(ctx, prefix, func(kv *mvccpb.KeyValue) error {
			if kv.ModRevision > before {
				return nil
			}
			removed, err := s.remove(ctx, kv)
			if removed {
				swept++
			}
			return err
		}, clientv3.WithKeysOnly())
		if err != nil {
			return swept, 0, fmt.Errorf("sweep %s: %w", prefix, err)
		}
	}
	return swept, now.Header.Revision, nil
}

// RemoveMailboxes is described in store.Sweeper. The batches go first: without its batch an answer cannot be put
// any more.
func (s *Store) RemoveMailboxes(ctx context.Context, sender string, boxes ...int) error {
	if !validSender(sender) {
		return fmt.Errorf("remove mailboxes of %q: %w: malformed sender", sender, store.ErrRefused)
	}
	if len(boxes) == 0 {
		for shard := range s.meta.shards + 1 { // and the box that every node reads
			boxes = append(boxes, shard)
		}
	}
	var ranges []string
	for _, box := range boxes {
		ranges = append(ranges, s.keys.lanes(box, sender))
	}
	ranges = append(ranges, s.keys.answers(sender))
	for len(ranges) > 0 {
		n := min(len(ranges), removeRanges)
		var deletes []clientv3.Op
		for _, prefix := range ranges[:n] {
			deletes = append(deletes, clientv3.OpDelete(prefix, clientv3.WithPrefix()))
		}
		if _, err := s.transact(ctx, nil, deletes, nil); err != nil {
			return fmt.Errorf("remove mailboxes of %q: %w", sender, err)
		}
		ranges = ranges[n:]
	}
	return nil
}
