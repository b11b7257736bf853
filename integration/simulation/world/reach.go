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

// reach is a process' way to the archive, which has the weather of its way to etcd and goes over the bus' connection. It
// implements store.Archive.
type reach struct {
	archive *memarchive.Archive
	way     *way
	port    *port
}

func newReach(archive *memarchive.Archive, y *way, p *port) store.Archive {
	return &reach{archive, y, p}
}

// parcel carries an answer of the archive.
type parcel[T any] struct {
	proto.Message // none: it makes the parcel an answer that passes a way
	content       T
}

// archiveWithin bounds each request of the archive, as a real one does.
const archiveWithin = 5 * time.Second

// ask makes a request of the archive, which may be lost, late, made twice, or go unanswered.
func ask[T any](ctx context.Context, r *reach, method string, writes bool, make func() (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, archiveWithin)
	defer cancel()
	if !r.port.passes() {
		return answer, r.way.fail(ctx, []error{errAway})
	}
	m, err := r.way.Call(ctx, modeletcd.Call{Method: method, Writes: writes, Make: func() (proto.Message, error) {
		content, err := make()
		return parcel[T]{content: content}, err
	}})
	if p, ok := m.(parcel[T]); ok {
		answer = p.content
	}
	return answer, err
}

// Head implements store.Archiver.
func (r *reach) Head(ctx context.Context, shard int) (store.ArchiveHead, error) {
	return ask(ctx, r, "archive: Head", false, func() (store.ArchiveHead, error) { return r.archive.Head(ctx, shard) })
}

// Archive implements store.Archiver.
func (r *reach) Archive(ctx context.Context, shard int, after store.ArchiveHead, entries []store.Record) (store.ArchiveHead, error) {
	return ask(ctx, r, "archive: Archive", true, func() (store.ArchiveHead, error) { return r.archive.Archive(ctx, shard, after, entries) })
}

// Confirm implements store.Archiver.
func (r *reach) Confirm(ctx context.Context, shard int, head store.ArchiveHead, entries []store.Record) error {
	_, err := ask(ctx, r, "archive: Confirm", false, func() (none struct{}, _ error) { return none, r.archive.Confirm(ctx, shard, head, entries) })
	return err
}

// DurableAfter implements store.Archiver.
func (r *reach) DurableAfter() time.Duration { return r.archive.DurableAfter() }

// ReadArchive implements store.ArchiveReader.
func (r *reach) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return r.read(ctx, func() iter.Seq2[store.Record, error] { return r.archive.ReadArchive(ctx, shard, from) })
}

// FindArchived implements store.ArchiveReader.
func (r *reach) FindArchived(ctx context.Context, shard int, task events.TaskID, last uint64) iter.Seq2[store.Record, error] {
	return r.read(ctx, func() iter.Seq2[store.Record, error] { return r.archive.FindArchived(ctx, shard, task, last) })
}

// read yields what the archive holds, or the error of a way that breaks before all is read.
func (r *reach) read(ctx context.Context, all func() iter.Seq2[store.Record, error]) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		found, err := ask(ctx, r, "archive: Read", false, func() (iter.Seq2[store.Record, error], error) { return all(), nil })
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		found(yield)
	}
}
