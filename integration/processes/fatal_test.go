package processes_test

import (
	"bytes"
	"context"
	"iter"
	"os"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/events"
	"taskledger/store"
)

// The writes of a shard's upkeep. A trim is made in pieces, each a transaction.
const (
	writePart    = "part"
	writePublish = "publish"
	writeArchive = "archive"
	writeConfirm = "confirm" // it only reads
	writeTrim    = "trim"
	writePiece   = "piece"
)

// fatalWrite is a write at which a process kills itself: before it makes the n-th of its kind, or as soon as that is
// made. A process with one shard makes those of a kind one after the other.
type fatalWrite struct {
	Kind string
	Nth  int
	Made bool // it dies after the write

	made int
}

// do makes a write of a kind, unless the process dies before. What fails does not count.
func (w *fatalWrite) do(kind string, make func() error) error {
	if kind != w.Kind {
		return make()
	}
	if !w.Made && w.made+1 == w.Nth {
		die()
	}
	err := make()
	if err == nil {
		w.made++
	}
	if w.Made && w.made == w.Nth {
		die()
	}
	return err
}

// die ends the process as kill -9 does, and never returns.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

type fatalStore struct {
	store.Store
	at *fatalWrite
}

func (s fatalStore) PutPart(ctx context.Context, o store.Ownership, entry uint64, part int, data []byte) error {
	return s.at.do(writePart, func() error { return s.Store.PutPart(ctx, o, entry, part, data) })
}

func (s fatalStore) Publish(
	ctx context.Context, o store.Ownership, seen store.SnapshotPointer, made store.SnapshotInfo,
) (p store.SnapshotPointer, err error) {
	err = s.at.do(writePublish, func() (err error) {
		p, err = s.Store.Publish(ctx, o, seen, made)
		return err
	})
	return p, err
}

func (s fatalStore) Trim(ctx context.Context, o store.Ownership, p store.SnapshotPointer, first, until uint64) error {
	return s.at.do(writeTrim, func() error { return s.Store.Trim(ctx, o, p, first, until) })
}

// fatalKV is below the store: it sees the pieces of a trim, the transactions that delete entries.
type fatalKV struct {
	clientv3.KV
	at *fatalWrite
}

func (kv fatalKV) Do(ctx context.Context, op clientv3.Op) (resp clientv3.OpResponse, err error) {
	_, then, _ := op.Txn()
	if len(then) != 1 || !then[0].IsDelete() || !bytes.Contains(then[0].KeyBytes(), []byte("/journal/")) {
		return kv.KV.Do(ctx, op)
	}
	err = kv.at.do(writePiece, func() (err error) {
		resp, err = kv.KV.Do(ctx, op)
		return err
	})
	return resp, err
}

// fatalArchive embeds nothing: the field would have the name of a method.
type fatalArchive struct {
	to store.Archive
	at *fatalWrite
}

func (a fatalArchive) Archive(
	ctx context.Context, shard int, after store.ArchiveHead, entries []store.Record,
) (h store.ArchiveHead, err error) {
	err = a.at.do(writeArchive, func() (err error) {
		h, err = a.to.Archive(ctx, shard, after, entries)
		return err
	})
	return h, err
}

func (a fatalArchive) Confirm(ctx context.Context, shard int, head store.ArchiveHead, entries []store.Record) error {
	return a.at.do(writeConfirm, func() error { return a.to.Confirm(ctx, shard, head, entries) })
}

func (a fatalArchive) Head(ctx context.Context, shard int) (store.ArchiveHead, error) {
	return a.to.Head(ctx, shard)
}

func (a fatalArchive) DurableAfter() time.Duration { return a.to.DurableAfter() }

func (a fatalArchive) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return a.to.ReadArchive(ctx, shard, from)
}

func (a fatalArchive) FindArchived(
	ctx context.Context, shard int, task events.TaskID, last uint64,
) iter.Seq2[store.Record, error] {
	return a.to.FindArchived(ctx, shard, task, last)
}
