package etcdstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

const (
	// receivingBase counts the revisions of a cluster that is being copied, whose base is not known yet: none that it
	// carries is higher.
	receivingBase = maxBase
	// writeAttempts bounds the copies of a write that is not answered: whoever copies begins again where it ended.
	writeAttempts = 10
)

// Receiver takes the copy of a cluster into an etcd. It implements store.Receiver.
type Receiver struct {
	store    *Store
	of       string
	is       meta  // of the cluster that is copied
	mark     int64 // mod revision of the key that marks the copy; 0 = there is none
	begun    bool  // by this one
	finished bool  // the cluster is there
}

var _ store.Receiver = (*Receiver)(nil)

// Receive looks at the place of a cluster that is to be copied there, and changes nothing. of names for people what is
// copied. Of cfg, Shards, ID, Existing and MayCreate do not count. It wraps what Open wraps, and store.ErrTaken where
// anything else is there than a copy of this cluster. The caller closes it.
func Receive(ctx context.Context, cfg Config, c store.Cluster, of string) (*Receiver, error) {
	r := &Receiver{of: of, is: meta{shards: c.Shards, id: c.ID, key: c.Key}}
	cfg.Shards = c.Shards
	s, err := openWith(ctx, cfg, r.look)
	if err != nil {
		return nil, err
	}
	r.store = s
	return r, nil
}

// Close ends the connection unless it came with the Config.
func (r *Receiver) Close() error { return r.store.Close() }

// look finds out what is there.
func (r *Receiver) look(s *Store, ctx context.Context, _ *Config) error {
	resp, err := s.transact(ctx, nil, []clientv3.Op{
		clientv3.OpGet(s.keys.meta()),
		clientv3.OpGet(s.keys.copying()),
		clientv3.OpGet(string(s.keys), clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()),
	}, nil)
	if err != nil {
		return fmt.Errorf("look what is there: %w", err)
	}
	there, mark, any := found(resp, 0), found(resp, 1), found(resp, 2)
	switch {
	case there != nil:
		r.finished = true
		s.meta, err = decodeMeta(there.Value)
		s.meta.created = there.CreateRevision
		if err == nil && !r.is.same(s.meta) {
			err = fmt.Errorf("%w: it holds cluster %s, which is another one", store.ErrTaken, s.meta.id)
		}
	case mark != nil:
		err = r.marked(mark)
		r.mark = mark.ModRevision
	case any != nil:
		err = fmt.Errorf("%w: there is the key %s, of no cluster: remove what is there, or choose another name",
			store.ErrTaken, any.Key)
	}
	if err == nil && !r.finished {
		s.meta = r.is
		s.meta.base = receivingBase
		if r.mark != 0 {
			r.mark += receivingBase
		}
	}
	return err
}

// same reports whether two records describe one cluster.
func (m meta) same(other meta) bool {
	return m.id == other.id && m.shards == other.shards && bytes.Equal(m.key, other.key)
}

// marked returns an error unless the mark is that of a copy of this cluster.
func (r *Receiver) marked(mark *mvccpb.KeyValue) error {
	of, m, err := decodeCopying(mark.Value)
	if err == nil && !r.is.same(m) {
		err = fmt.Errorf("%w: %w", store.ErrTaken, unfinished(of, m))
	}
	return err
}

// Copied implements store.Receiver.
func (r *Receiver) Copied(context.Context) (store.Store, bool, error) {
	if !r.finished && r.mark == 0 {
		return nil, false, nil
	}
	return r.store, r.finished, nil
}

// Begin implements store.Receiver.
func (r *Receiver) Begin(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return fmt.Errorf("begin the copy: %w", err)
	}
	return nil
}

func (r *Receiver) begin(ctx context.Context) error {
	s := r.store
	if r.finished {
		return fmt.Errorf("%w: the cluster is there", store.ErrTaken)
	}
	is := clientv3.Compare(clientv3.ModRevision(s.keys.copying()), "=", r.mark)
	if r.mark == 0 {
		prefix := string(s.keys)
		is = clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithRange(end(prefix))
	}
	value := encodeCopying(r.of, r.is)
	resp, err := r.sendAny(ctx, []clientv3.Cmp{is}, []clientv3.Op{put(s.keys.copying(), value)},
		[]clientv3.Op{clientv3.OpGet(s.keys.copying())})
	if err != nil {
		return err
	}
	if !resp.Succeeded {
		now := found(resp, 0)
		if now == nil || now.ModRevision <= r.mark || !bytes.Equal(now.Value, value) {
			return fmt.Errorf("%w: somebody else has written there", store.ErrTaken)
		}
		r.mark, r.begun = now.ModRevision, true // an earlier copy of the request was applied
		return nil
	}
	r.mark, r.begun = resp.Header.Revision, true
	return nil
}

// AddShard implements store.Receiver.
func (r *Receiver) AddShard(ctx context.Context, shard int, is store.ReceivedShard, parts store.PartsOf) error {
	if err := r.addShard(ctx, shard, is, parts); err != nil {
		return fmt.Errorf("copy what is kept of shard %d: %w", shard, err)
	}
	return nil
}

func (r *Receiver) addShard(ctx context.Context, shard int, is store.ReceivedShard, parts store.PartsOf) error {
	if err := r.store.checkShard(shard); err != nil {
		return err
	}
	keys := r.store.keys
	pointer, loss := clientv3.OpDelete(keys.pointer(shard)), clientv3.OpDelete(keys.loss(shard))
	if kept := is.Pointer.Kept; len(kept) > 0 {
		if err := checkKept(kept); err != nil {
			return fmt.Errorf("%w: %w", store.ErrRefused, err)
		}
		pointer = put(keys.pointer(shard), encodePointer(kept))
	}
	if is.Loss.Revision != 0 {
		loss = put(keys.loss(shard), encodeLoss(is.Loss))
	}
	ops := append(r.store.removeOthers(shard, is.Pointer.Kept), pointer, loss)
	if is.First > 1 {
		ops = append(ops, clientv3.OpDelete(keys.entry(shard, 0), clientv3.WithRange(keys.entry(shard, is.First))))
	}
	if err := r.write(ctx, ops...); err != nil {
		return err
	}
	for _, s := range is.Pointer.Kept {
		if err := r.addSnapshot(ctx, shard, s, parts); err != nil {
			return fmt.Errorf("snapshot %d: %w", s.Entry, err)
		}
	}
	return nil
}

// addSnapshot stores the parts of a snapshot, as many at a time as a request takes.
func (r *Receiver) addSnapshot(ctx context.Context, shard int, s store.SnapshotInfo, parts store.PartsOf) error {
	var ops []clientv3.Op
	part, size := 0, 0
	for data, err := range parts(s) {
		if err != nil {
			return err
		}
		if len(ops) == store.MaxReceivedEntries || len(ops) > 0 && size+len(data) > store.MaxReceivedBytes {
			if err := r.write(ctx, ops...); err != nil {
				return err
			}
			ops, size = nil, 0
		}
		ops = append(ops, put(r.store.keys.part(shard, s.Entry, s.Epoch, part), data))
		part, size = part+1, size+len(data)
	}
	if len(ops) == 0 {
		return nil
	}
	return r.write(ctx, ops...)
}

// AddEntries implements store.Receiver.
func (r *Receiver) AddEntries(ctx context.Context, shard int, entries []store.Record) error {
	if err := r.addEntries(ctx, shard, entries); err != nil {
		return fmt.Errorf("copy entries of shard %d: %w", shard, err)
	}
	return nil
}

func (r *Receiver) addEntries(ctx context.Context, shard int, entries []store.Record) error {
	if err := r.store.checkShard(shard); err != nil {
		return err
	}
	for len(entries) > 0 {
		compare, then, otherwise := r.marks(), []clientv3.Op(nil), r.readMark()
		for _, e := range entries {
			key := r.store.keys.entry(shard, e.Number)
			compare = append(compare, clientv3.Compare(clientv3.CreateRevision(key), "=", 0))
			then = append(then, put(key, carry(e.Revision, e.Data)))
			otherwise = append(otherwise, clientv3.OpGet(key))
		}
		resp, err := r.send(ctx, compare, then, otherwise)
		if err != nil || resp.Succeeded {
			return err
		}
		if err := r.lost(found(resp, 0)); err != nil {
			return err
		}
		if entries, err = missing(entries, resp); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the entries that are not there: perhaps none, when an earlier copy of the request was applied. It
// wraps store.ErrTaken where others are there.
func missing(entries []store.Record, resp *clientv3.TxnResponse) (left []store.Record, err error) {
	for i, e := range entries {
		switch there := found(resp, i+1); {
		case there == nil:
			left = append(left, e)
		case !bytes.Equal(there.Value, carry(e.Revision, e.Data)):
			return nil, fmt.Errorf("%w: entry %d is another one", store.ErrTaken, e.Number)
		}
	}
	return left, nil
}

// Finish implements store.Receiver.
func (r *Receiver) Finish(ctx context.Context, revision int64, written store.Reads) error {
	if err := r.finish(ctx, revision, written); err != nil {
		return fmt.Errorf("finish the copy: %w", err)
	}
	return nil
}

func (r *Receiver) finish(ctx context.Context, revision int64, written store.Reads) error {
	if revision <= 0 || revision >= receivingBase {
		return fmt.Errorf("%w: revision %d", store.ErrRefused, revision)
	}
	s, is := r.store, r.is
	is.base = revision
	value := encodeMeta(is)
	resp, err := r.send(ctx, r.marks(), []clientv3.Op{
		put(s.keys.meta(), value),
		put(s.keys.written(), encodeWritten(written)),
		clientv3.OpDelete(s.keys.copying()),
	}, append(r.readMark(), clientv3.OpGet(s.keys.meta())))
	if err != nil {
		return err
	}
	if there := (*mvccpb.KeyValue)(nil); !resp.Succeeded {
		if there = found(resp, 1); there == nil || !bytes.Equal(there.Value, value) {
			return cmp.Or(r.lost(found(resp, 0)), store.ErrTaken)
		}
	}
	r.finished, r.begun = true, false
	return nil
}

// marks returns the compare that holds while this copy goes on.
func (r *Receiver) marks() []clientv3.Cmp {
	return []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(r.store.keys.copying()), "=", r.mark)}
}

// readMark reads, as operation 0, what lost looks at.
func (r *Receiver) readMark() []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(r.store.keys.copying(), clientv3.WithKeysOnly())}
}

// lost returns an error where the mark is not that of this copy any more.
func (r *Receiver) lost(mark *mvccpb.KeyValue) error {
	if modRevision(mark) != r.mark {
		return fmt.Errorf("%w: another copy was begun since", store.ErrTaken)
	}
	return nil
}

// write makes operations while the mark is there.
func (r *Receiver) write(ctx context.Context, ops ...clientv3.Op) error {
	resp, err := r.send(ctx, r.marks(), ops, r.readMark())
	if err != nil || resp.Succeeded {
		return err
	}
	return cmp.Or(r.lost(found(resp, 0)), store.ErrTaken)
}

// send makes a write of a copy that was begun.
func (r *Receiver) send(
	ctx context.Context, compare []clientv3.Cmp, then, otherwise []clientv3.Op,
) (*clientv3.TxnResponse, error) {
	if !r.begun {
		return nil, fmt.Errorf("%w: no copy was begun", store.ErrTaken)
	}
	return r.sendAny(ctx, compare, then, otherwise)
}

// sendAny is Store.transact that gives up after a while, and at once where etcd is full.
func (r *Receiver) sendAny(
	ctx context.Context, compare []clientv3.Cmp, then, otherwise []clientv3.Op,
) (*clientv3.TxnResponse, error) {
	s := r.store
	op := clientv3.OpTxn(fromBase(s.meta.base, compare), then, otherwise)
	var resp clientv3.OpResponse
	var err error
	for range writeAttempts {
		err = s.bounded(ctx, func(ctx context.Context) (err error) {
			resp, err = s.client.Do(ctx, op)
			return err
		})
		switch {
		case err == nil:
			txnOverBase(s.meta.base, resp.Txn())
			return resp.Txn(), nil
		case errors.Is(err, rpctypes.ErrNoSpace):
			return nil, fmt.Errorf("%w: %w", store.ErrFull, err)
		case refused(err):
			return nil, fmt.Errorf("%w: %w", store.ErrRefused, err)
		}
		if ended := s.wait(ctx, maxPause); ended != nil {
			return nil, fmt.Errorf("%w; last answer: %w", ended, err)
		}
	}
	return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}
