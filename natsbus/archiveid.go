package natsbus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Archived describes the stream of an archive.
type Archived struct {
	Stream   string
	Cluster  string // id of its cluster; "" = the stream does not tell
	Messages uint64
}

// FindArchive looks for the stream of the cluster that cfg names; nil = there is none, or no JetStream. Of cfg the
// key does not count.
func FindArchive(ctx context.Context, cfg Config) (found *Archived, err error) {
	cfg.Key = make([]byte, KeyBytes)
	rand.Read(cfg.Key) // never fails
	b, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	a, err := b.Archive(ArchiveConfig{})
	if err != nil {
		return nil, err
	}
	info, err := a.info(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, ErrNoJetStream):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for stream %s: %w", a.stream, err)
	}
	return &Archived{Stream: a.stream, Cluster: clusterOf(info.Config), Messages: info.State.Msgs}, nil
}

func (a *Archive) info(ctx context.Context) (info *jetstream.StreamInfo, err error) {
	err = a.request(ctx, func(ctx context.Context) error {
		s, err := a.js.Stream(ctx, a.stream)
		if err == nil {
			info = s.CachedInfo()
		}
		return err
	})
	return info, err
}

// naming records a failed attempt to write the cluster's id into a stream that does not tell it.
type naming struct {
	busy   sync.Mutex                // somebody has it tell the cluster
	failed atomic.Pointer[time.Time] // when it was last found not to; nil: nobody has tried, or it tells its cluster by now
}

// nameAgain is the time until a stream that could not be named is asked again. Until then it is taken for the stream
// that it was.
const nameAgain = time.Minute

// belongs wraps store.ErrConflict if the stream is known to be another cluster's. It asks until the stream says
// that it is this one's, of one that could not be named once a minute.
func (a *Archive) belongs(ctx context.Context) error {
	failed := a.naming.failed.Load()
	if a.cfg.Cluster == "" || a.ours.Load() || failed != nil && time.Since(*failed) < nameAgain {
		return nil
	}
	info, err := a.info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err == nil {
		err = a.ofAnother(info.Config)
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", a.stream, err)
	}
	if clusterOf(info.Config) == a.cfg.Cluster {
		a.ours.Store(true)
		a.naming.failed.Store(nil)
	} else if failed != nil {
		a.naming.failed.CompareAndSwap(failed, new(time.Now()))
	}
	return nil
}

// Claim implements store.Claiming. It changes the metadata of a stream that tells no cluster, which somebody else
// has made. Where the server does not let it, it says so in the log once, and Inspect tries again.
func (a *Archive) Claim(ctx context.Context) error {
	if a.cfg.Cluster == "" || a.ours.Load() || a.naming.failed.Load() != nil || !a.naming.busy.TryLock() {
		return nil
	}
	defer a.naming.busy.Unlock()
	info, err := a.info(ctx)
	if err == nil {
		err = a.name(ctx, info.Config)
	}
	if err != nil {
		return fmt.Errorf("claim stream %s: %w", a.stream, err)
	}
	return a.belongs(ctx) // another cluster may have claimed it at the same time
}

// name has a stream tell this cluster, unless it tells one. One that cannot keeps everything all the same, which is
// no error.
func (a *Archive) name(ctx context.Context, c jetstream.StreamConfig) error {
	if err := a.ofAnother(c); err != nil {
		return err
	}
	if a.cfg.Cluster == "" || clusterOf(c) != "" {
		return nil
	}
	c.Metadata = maps.Clone(c.Metadata)
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	c.Metadata[clusterMetadata] = a.cfg.Cluster
	err := a.request(ctx, func(ctx context.Context) error {
		s, err := a.js.UpdateStream(ctx, c)
		if err == nil && clusterOf(s.CachedInfo().Config) == "" {
			err = errors.New("its servers keep no metadata: NATS does from 2.10 on")
		}
		return err
	})
	switch {
	case err == nil:
		a.naming.failed.Store(nil)
	case errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrConnectionClosed),
		ctx.Err() != nil: // it is tried again
		return fmt.Errorf("write the cluster's id into its metadata: %w", err)
	case a.naming.failed.Swap(new(time.Now())) == nil:
		a.bus.log.WarnContext(ctx, "the archive does not tell its cluster: another one of this name could write to it",
			"stream", a.stream, "err", err)
	}
	return nil
}

// ofAnother wraps store.ErrConflict if the stream is known to be another cluster's.
func (a *Archive) ofAnother(c jetstream.StreamConfig) error { return foreign(c, a.cfg.Cluster) }
