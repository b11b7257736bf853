package natsbus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/store"
)

const (
	// defaultDurableAfter is longer than a server may take, at its default of 2 minutes, to sync what it acknowledged.
	defaultDurableAfter = 3 * time.Minute
	// MaxReplicas is the limit of JetStream for ArchiveConfig.Replicas and LogsConfig.Replicas.
	MaxReplicas = 5
	// maxSends bounds how often a segment is sent while the outcome stays unknown. The caller may send it again.
	maxSends = 3
)

// ArchiveConfig says how the archive is kept. The zero value works.
type ArchiveConfig struct {
	// Cluster is the cluster's id, which its stream tells in the metadata, also one that somebody else has made: it
	// is written there before the first segment, or by Claim. A stream that tells another id is neither read nor
	// written. Default: the stream is anybody's.
	Cluster string
	// Replicas is the number of servers that keep the stream when it is made here, 1 to 5. Default 1. A stream that
	// exists stays as it is.
	Replicas int
	// DurableAfter is the time from the acknowledgement of a segment until it may count as durable: longer than the
	// servers' sync_interval. Default 3 min; negative: at once, for servers that sync always.
	DurableAfter time.Duration
}

// Archive implements store.Archive on a JetStream stream, over the connection of a bus. Every request ends within 5
// s, also when NATS is away, and a segment is sent three times at most; calls work again when NATS is back. Its
// methods may be called concurrently; it needs no closing.
//
// Without JetStream all methods wrap ErrNoJetStream, and those of store.ArchiveReader store.ErrNoArchive, too: that
// alone where JetStream has no stream of the cluster.
type Archive struct {
	remote
	cfg      ArchiveConfig
	subjects string // prefix of the shards' subjects
	provided atomic.Bool
	ours     atomic.Bool // the stream tells this cluster
	naming   naming
	places   places
	latest   sync.Map // shard -> *segment that was archived last, where it is confirmed at once
}

var (
	_ store.Archive    = (*Archive)(nil)
	_ store.Inspecting = (*Archive)(nil)
	_ store.Claiming   = (*Archive)(nil)
)

// Archive returns the cluster's archive, which works until b is closed. It asks NATS nothing: the stream is made by
// the first segment. An error means that cfg is wrong; it names the field.
func (b *Bus) Archive(cfg ArchiveConfig) (*Archive, error) {
	if cfg.Replicas < 0 || cfg.Replicas > MaxReplicas {
		return nil, fmt.Errorf("archive: replicas: %d, want 1 to %d", cfg.Replicas, MaxReplicas)
	}
	cfg.Replicas = max(cfg.Replicas, 1)
	if cfg.DurableAfter == 0 {
		cfg.DurableAfter = defaultDurableAfter
	}
	r, err := b.remote(streamName(b.prefix[:len(b.prefix)-1]))
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return &Archive{remote: r, cfg: cfg, subjects: b.prefix + "archive."}, nil
}

func (a *Archive) subject(shard int) string { return a.subjects + strconv.Itoa(shard) }

// DurableAfter implements store.Archiver.
func (a *Archive) DurableAfter() time.Duration { return max(a.cfg.DurableAfter, 0) }

// Head implements store.Archiver. It wraps events.ErrDamaged when the last message of the shard is no segment.
func (a *Archive) Head(ctx context.Context, shard int) (store.ArchiveHead, error) {
	err := a.belongs(ctx)
	var m *stored
	if err == nil {
		m, err = a.last(ctx, shard)
	}
	if err != nil {
		return store.ArchiveHead{}, fmt.Errorf("end of the archive of shard %d: %w", shard, err)
	}
	if m == nil {
		return store.ArchiveHead{}, nil
	}
	entries, err := decodeSegment(shard, m)
	if err != nil {
		return store.ArchiveHead{}, err
	}
	begins, err := readBegins(m)
	if err != nil {
		return store.ArchiveHead{}, damaged(shard, m, err)
	}
	return store.ArchiveHead{Entry: entries[len(entries)-1].Number, Sequence: m.sequence, Begins: begins}, nil
}

// Archive implements store.Archiver. Besides the errors named there, it wraps nats.ErrMaxPayload beyond the server's
// limit, store.ErrFull when JetStream has no space left, and ErrNoJetStream.
func (a *Archive) Archive(
	ctx context.Context,
	shard int,
	after store.ArchiveHead,
	entries []store.Record,
) (store.ArchiveHead, error) {
	wrap := func(err error) (store.ArchiveHead, error) {
		return store.ArchiveHead{}, fmt.Errorf("archive entries of shard %d after %d: %w", shard, after.Entry, err)
	}
	if err := store.CheckSegment(entries); err != nil {
		return wrap(err)
	}
	if first := entries[0].Number; first != after.Entry+1 {
		return wrap(fmt.Errorf("%w: entry %d is given", store.ErrConflict, first))
	}
	s, err := newSegment(shard, entries)
	if err == nil {
		err = a.provide(ctx)
	}
	if err == nil {
		err = a.belongs(ctx)
	}
	if err != nil {
		return wrap(err)
	}
	s.begins = after.Begins
	sequence, err := a.append(ctx, shard, after, s)
	if err != nil {
		return wrap(err)
	}
	if a.DurableAfter() == 0 {
		a.latest.Store(shard, s)
	}
	return store.ArchiveHead{Entry: s.last, Sequence: sequence, Begins: s.begins}, nil
}

// append sends the segment until it is known to be stored or refused, a few times at most.
func (a *Archive) append(
	ctx context.Context,
	shard int,
	after store.ArchiveHead,
	s *segment,
) (sequence uint64, err error) {
	for range maxSends {
		sequence, err = a.send(ctx, shard, after.Sequence, s)
		if err == nil || refused(err) {
			return sequence, err
		}
		m, unread := a.last(ctx, shard)
		switch {
		case unread != nil:
			return 0, errors.Join(err, unread)
		case m == nil && after.Sequence == 0 || m != nil && m.sequence == after.Sequence:
			continue
		case m != nil && s.same(m):
			return m.sequence, nil
		}
		return 0, fmt.Errorf("%w: its last segment is another: %w", store.ErrConflict, err)
	}
	return 0, err
}

// refused reports that the segment was not stored, and would not be if it were sent again.
func refused(err error) bool {
	return errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, store.ErrFull) || errors.Is(err, ErrNoJetStream)
}

// send publishes the segment, which is stored if the shard's last message is the one at after.
func (a *Archive) send(ctx context.Context, shard int, after uint64, s *segment) (sequence uint64, err error) {
	sequence, err = a.publish(ctx, s.message(a.subject(shard)), after)
	if errors.Is(err, jetstream.ErrNoStreamResponse) { // it was removed, or its leader is away
		a.provided.Store(false)
		a.ours.Store(false)
		a.naming.failed.Store(nil)
	}
	return sequence, err
}

// segmentOf is newSegment, which need not read the entries that were just archived again.
func (a *Archive) segmentOf(shard int, entries []store.Record) (*segment, error) {
	if latest, ok := a.latest.LoadAndDelete(shard); ok {
		if s := latest.(*segment); bytes.Equal(s.body, pack(shard, entries)) {
			return s, nil
		}
	}
	return newSegment(shard, entries)
}

// Confirm implements store.Archiver. It asks the leader of the stream.
func (a *Archive) Confirm(ctx context.Context, shard int, head store.ArchiveHead, entries []store.Record) error {
	wrap := func(err error) error {
		return fmt.Errorf("confirm segment %d of shard %d: %w", head.Sequence, shard, err)
	}
	if len(entries) == 0 {
		return wrap(errors.New("no entries given"))
	}
	if err := a.belongs(ctx); err != nil {
		return wrap(err)
	}
	s, err := a.segmentOf(shard, entries)
	if err != nil {
		return wrap(err)
	}
	s.begins = head.Begins
	m, err := a.next(ctx, shard, head.Sequence)
	if err != nil {
		return wrap(err)
	}
	if m == nil || m.sequence != head.Sequence {
		return wrap(fmt.Errorf("%w: it is gone", store.ErrConflict))
	}
	if s.last != head.Entry || !s.same(m) {
		return wrap(fmt.Errorf("%w: it holds something else", store.ErrConflict))
	}
	return nil
}
