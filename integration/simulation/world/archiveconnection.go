package world

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"

	"taskledger/events"
	"taskledger/internal/modeletcd"
	"taskledger/store"
	"taskledger/store/memarchive"
)

// archiveConnection joins a process to the archive, over its connection to the bus and with the faults of that to etcd.
// It implements store.Archive.
type archiveConnection struct {
	archive *memarchive.Archive
	conn    *connection
	port    *port
}

func newArchiveConnection(archive *memarchive.Archive, conn *connection, p *port) store.Archive {
	return &archiveConnection{archive, conn, p}
}

// parcel carries an answer of the archive.
type parcel[T any] struct {
	proto.Message // none: it makes the parcel an answer that passes a connection
	content       T
}

// archiveWithin bounds each request of the archive, as a real one does.
const archiveWithin = 5 * time.Second

// ask makes a request of the archive, which may be lost, late, made twice, or go unanswered.
func ask[T any](
	ctx context.Context, a *archiveConnection, method string, writes bool, make func() (T, error),
) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, archiveWithin)
	defer cancel()
	if !a.port.passes() {
		return answer, a.conn.fail(ctx, []error{errAway})
	}
	m, err := a.conn.Call(ctx, modeletcd.Call{Method: method, Writes: writes, Make: func() (proto.Message, error) {
		content, err := make()
		return parcel[T]{content: content}, err
	}})
	if p, ok := m.(parcel[T]); ok {
		answer = p.content
	}
	return answer, err
}

// Head implements store.Archiver.
func (a *archiveConnection) Head(ctx context.Context, shard int) (store.ArchiveHead, error) {
	return ask(ctx, a, "archive: Head", false, func() (store.ArchiveHead, error) { return a.archive.Head(ctx, shard) })
}

// Archive implements store.Archiver.
func (a *archiveConnection) Archive(
	ctx context.Context, shard int, after store.ArchiveHead, entries []store.Record,
) (store.ArchiveHead, error) {
	return ask(ctx, a, "archive: Archive", true, func() (store.ArchiveHead, error) {
		return a.archive.Archive(ctx, shard, after, entries)
	})
}

// Confirm implements store.Archiver.
func (a *archiveConnection) Confirm(
	ctx context.Context, shard int, head store.ArchiveHead, entries []store.Record,
) error {
	_, err := ask(ctx, a, "archive: Confirm", false, func() (none struct{}, _ error) {
		return none, a.archive.Confirm(ctx, shard, head, entries)
	})
	return err
}

// DurableAfter implements store.Archiver.
func (a *archiveConnection) DurableAfter() time.Duration { return a.archive.DurableAfter() }

// ReadArchive implements store.ArchiveReader.
func (a *archiveConnection) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return a.read(ctx, func() iter.Seq2[store.Record, error] { return a.archive.ReadArchive(ctx, shard, from) })
}

// FindArchived implements store.ArchiveReader.
func (a *archiveConnection) FindArchived(
	ctx context.Context, shard int, task events.TaskID, last uint64,
) iter.Seq2[store.Record, error] {
	return a.read(ctx, func() iter.Seq2[store.Record, error] { return a.archive.FindArchived(ctx, shard, task, last) })
}

// read yields what the archive holds, or the error of a connection that breaks before all is read.
func (a *archiveConnection) read(
	ctx context.Context, all func() iter.Seq2[store.Record, error],
) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		found, err := ask(ctx, a, "archive: Read", false, func() (iter.Seq2[store.Record, error], error) {
			return all(), nil
		})
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		found(yield)
	}
}
