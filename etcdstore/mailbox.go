package etcdstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// Post is described in store.Mailbox. A batch must not be empty; a sender's id is 1 to 128 of [A-Za-z0-9._:-]. An
// error that wraps store.ErrRefused means that nothing was posted, any other that it may have been.
func (s *Store) Post(ctx context.Context, shard int, sender string, lane uint8, batch []byte) error {
	if err := s.post(ctx, shard, sender, lane, batch); err != nil {
		return fmt.Errorf("write commands of %q for shard %d to etcd (lane %d): %w", sender, shard, lane, err)
	}
	return nil
}

func (s *Store) post(ctx context.Context, shard int, sender string, lane uint8, batch []byte) error {
	if shard != s.meta.shards { // the box that every node reads
		if err := s.checkShard(shard); err != nil {
			return err
		}
	}
	if !validSender(sender) || len(batch) == 0 {
		return fmt.Errorf("%w: malformed sender or empty batch", store.ErrRefused)
	}
	key, posting := s.keys.batch(shard, sender, lane), encodeMailboxValue(batch)
	sent := false // the batch was, perhaps
	for tried := false; ; tried = true {
		resp, err := s.get(ctx, key)
		if err != nil {
			return err
		}
		var seen int64
		value := encodeMailboxValue(nil) // a slot; see the package comment
		if len(resp.Kvs) > 0 {
			if tried && bytes.Equal(resp.Kvs[0].Value, posting) {
				return nil
			}
			seen, value, sent = resp.Kvs[0].ModRevision, posting, true
		}
		posted, err := s.putBatch(ctx, key, seen, value)
		if err != nil && !sent && errors.Is(err, store.ErrFull) {
			err = fmt.Errorf("%w: %w", store.ErrRefused, err)
		}
		if err != nil {
			return err
		}
		if posted && seen != 0 {
			return nil
		}
		// The slot is there now, an earlier copy was applied, or another changed the key: the next read tells.
	}
}

// putBatch puts the value unless the key was written since. Unlike transact it does not wait for room: the sender
// posts again.
func (s *Store) putBatch(ctx context.Context, key string, seen int64, value []byte) (done bool, err error) {
	op := clientv3.OpTxn(
		fromBase(s.meta.base, []clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(key), "=", seen),
		}),
		[]clientv3.Op{put(key, value)}, nil)
	var full error
	err = s.resend(ctx, func(ctx context.Context) error {
		resp, err := s.client.Do(ctx, op)
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace):
			full = fmt.Errorf("%w: %w", store.ErrFull, err)
			return nil
		case err == nil:
			done = resp.Txn().Succeeded
		}
		return err
	})
	return done, cmp.Or(err, full)
}

// Batches is described in store.Mailbox. A batch may be yielded again until it has been answered. A value that
// cannot be read is logged and left where it is.
func (s *Store) Batches(ctx context.Context, shard int) iter.Seq2[store.MailboxBatch, error] {
	prefix := s.keys.mailboxOf(shard)
	return func(yield func(store.MailboxBatch, error) bool) {
		err := s.tail(ctx, prefix, func(kv *mvccpb.KeyValue) error {
			sender, lane, err := laned(kv.Key, prefix)
			batch, err2 := decodeMailboxValue(kv.Value)
			if err := errors.Join(err, err2); err != nil {
				s.log.ErrorContext(ctx, "unreadable batch in the mailbox", "key", string(kv.Key), "err", err)
				return nil
			}
			if batch == nil {
				return nil // a slot
			}
			if !yield(
				store.MailboxBatch{Shard: shard, Sender: sender, Lane: lane, Revision: kv.ModRevision, Batch: batch},
				nil,
			) {
				return errStopped
			}
			return nil
		})
		if err != nil {
			yield(store.MailboxBatch{}, err)
		}
	}
}

// Answer is described in store.Mailbox. It compares the revision of its batch, which its own success removes.
func (s *Store) Answer(ctx context.Context, b store.MailboxBatch, answer []byte) error {
	_, err := s.answer(ctx, b, answer, nil, nil)
	return err
}

// AnswerAs is described in store.Mailbox.
func (s *Store) AnswerAs(ctx context.Context, o store.Ownership, b store.MailboxBatch, answer []byte) error {
	err := checkOwnership(o)
	if err != nil {
		return err
	}
	resp, err := s.answer(ctx, b, answer, s.fences(o), s.readFences(o))
	if err != nil || resp.Succeeded {
		return err
	}
	if err := fenced(o, found(resp, 0), found(resp, 1)); err != nil {
		return fmt.Errorf("answer as the owner of shard %d: %w", o.Shard, err)
	}
	return nil // the batch has been replaced, or an earlier copy was applied
}

func (s *Store) answer(
	ctx context.Context,
	b store.MailboxBatch,
	answer []byte,
	fences []clientv3.Cmp,
	otherwise []clientv3.Op,
) (*clientv3.TxnResponse, error) {
	key := s.keys.batch(b.Shard, b.Sender, b.Lane)
	if b.Revision <= 0 || !validSender(b.Sender) {
		return nil, fmt.Errorf("answer %s: %w: not a posted batch", key, store.ErrRefused) // revision 0 would compare equal to absence
	}
	resp, err := s.transact(ctx,
		append(fences, clientv3.Compare(clientv3.ModRevision(key), "=", b.Revision)),
		[]clientv3.Op{
			clientv3.OpDelete(key),
			put(s.keys.answer(b.Sender, b.Shard, b.Lane), encodeMailboxValue(answer)),
		}, otherwise)
	if err != nil {
		return nil, fmt.Errorf("answer %s: %w", key, err)
	}
	return resp, nil
}

// Answers is described in store.Mailbox. An answer may be yielded again when its removal failed.
func (s *Store) Answers(ctx context.Context, sender string) iter.Seq2[store.MailboxAnswer, error] {
	prefix := s.keys.answers(sender)
	return func(yield func(store.MailboxAnswer, error) bool) {
		if !validSender(sender) {
			yield(store.MailboxAnswer{}, fmt.Errorf("answers to %q: %w: malformed sender", sender, store.ErrRefused))
			return
		}
		err := s.tail(ctx, prefix, func(kv *mvccpb.KeyValue) error {
			a, err := toAnswer(kv, prefix)
			if err != nil {
				s.log.ErrorContext(ctx, "unreadable answer", "key", string(kv.Key), "err", err)
				return nil
			}
			wanted := yield(a, nil)
			_, err = s.remove(ctx, kv)
			if !wanted {
				return errStopped
			}
			return err
		})
		if err != nil {
			yield(store.MailboxAnswer{}, err)
		}
	}
}

func toAnswer(kv *mvccpb.KeyValue, prefix string) (a store.MailboxAnswer, err error) {
	name, lane, err := laned(kv.Key, prefix)
	if err != nil {
		return a, err
	}
	shard, err := strconv.Atoi(name)
	if err != nil {
		return a, err
	}
	data, err := decodeMailboxValue(kv.Value)
	return store.MailboxAnswer{Shard: shard, Lane: lane, Answer: data}, err
}

// remove deletes the key unless it was written again since. It reports false, too, when only an earlier copy was
// applied.
func (s *Store) remove(ctx context.Context, kv *mvccpb.KeyValue) (bool, error) {
	resp, err := s.transact(ctx,
		[]clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision),
		},
		[]clientv3.Op{clientv3.OpDelete(string(kv.Key))}, nil)
	return err == nil && resp.Succeeded, err
}
