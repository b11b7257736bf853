package natsbus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"taskledger/store"
)

// clusterMetadata is the key of the cluster's id in the metadata of its stream.
const clusterMetadata = "taskledger-cluster"

// Archived is a stream of an archive.
type Archived struct {
	Stream   string
	Cluster  string // id of its cluster; "" = the stream does not tell
	Messages uint64
}

// FindArchive looks for the stream of the cluster that cfg names; nil = there is none, or no JetStream. Of cfg the key does not count.
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
	return &Archived{Stream: a.stream, Cluster: info.Config.Metadata[clusterMetadata], Messages: info.State.Msgs}, nil
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

// belongs wraps store.ErrConflict if the stream is known to be another cluster's. It asks until there is a stream.
func (a *Archive) belongs(ctx context.Context) error {
	if a.cfg.Cluster == "" || a.ours.Load() {
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
	a.ours.Store(true)
	return nil
}

// ofAnother wraps store.ErrConflict if the stream is known to be another cluster's.
func (a *Archive) ofAnother(c jetstream.StreamConfig) error {
	is := c.Metadata[clusterMetadata]
	if is == "" || a.cfg.Cluster == "" || is == a.cfg.Cluster {
		return nil
	}
	return fmt.Errorf("%w: it is of cluster %s, this is %s: name this cluster otherwise, or remove the stream where nobody needs it any more",
		store.ErrConflict, is, a.cfg.Cluster)
}
