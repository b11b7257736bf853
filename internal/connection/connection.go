// Package connection opens the store, the bus and the archive of a cluster under one name.
package connection

import (
	"context"
	"errors"
	"fmt"
	"io"

	"taskledger/etcdstore"
	"taskledger/natsbus"
	"taskledger/store"
)

// ErrNotPrivate reports an etcd that others can write, where that was to be refused.
var ErrNotPrivate = errors.New("others can write etcd")

// Config names the servers, and the cluster to both kinds of them.
type Config struct {
	Etcd    etcdstore.Config
	NATS    natsbus.Config        // without URLs there is neither bus nor archive; with the Key of the cluster, no store
	Archive natsbus.ArchiveConfig // Open sets Cluster
	New     bool                  // create the cluster beside the archive of another one; default: ErrArchived
}

// Open opens what cfg names, and leaves nil what it does not name. The caller closes store and bus with Close.
func Open(ctx context.Context, cfg Config) (etcd store.Store, bus store.Bus, archive store.Archive, err error) {
	name := ""
	if cfg.NATS.Key == nil {
		opened, err := openStore(ctx, cfg)
		if err != nil {
			return nil, nil, nil, err
		}
		etcd, name = opened, opened.Name()
		cfg.NATS.Key, cfg.Archive.Cluster = opened.Cluster().Key, opened.Cluster().ID
	}
	if len(cfg.NATS.URLs) == 0 {
		return etcd, nil, nil, nil
	}
	opened, err := natsbus.Open(cfg.NATS)
	if err != nil {
		return nil, nil, nil, errors.Join(err, Close(etcd, nil))
	}
	if etcd != nil && opened.Name() != name {
		problem := fmt.Sprintf("%s of the bus, want %s as of the store", opened.Name(), name)
		err = &store.InvalidError{Field: "name", Problem: problem}
	} else {
		archive, err = opened.Archive(cfg.Archive)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, Close(etcd, opened))
	}
	return etcd, opened, archive, nil
}

func openStore(ctx context.Context, cfg Config) (*etcdstore.Store, error) {
	if over := cfg.NATS; len(over.URLs) > 0 && !cfg.New {
		cfg.Etcd.MayCreate = func(ctx context.Context) error { return mayCreate(ctx, over) }
	}
	opened, err := etcdstore.Open(ctx, cfg.Etcd)
	if errors.Is(err, etcdstore.ErrAuthOff) {
		err = fmt.Errorf("%w: %w: switch it on, or show a client certificate", ErrNotPrivate, err)
	}
	return opened, err
}

// Close closes the bus, then the store, each unless it is nil or cannot be closed.
func Close(etcd store.Store, bus store.Bus) error {
	var errs []error
	for _, open := range []any{bus, etcd} {
		if c, ok := open.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
