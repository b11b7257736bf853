// Package connection opens the store, the bus, the archive and the logs of a cluster under one name.
package connection

import (
	"context"
	"errors"
	"fmt"
	"io"

	"taskledger/etcdstore"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/tasklog"
)

// ErrNotPrivate reports an etcd that others can write, where that was to be refused.
var ErrNotPrivate = errors.New("others can write etcd")

// Config names the servers, and the cluster to both kinds of them.
type Config struct {
	Etcd    etcdstore.Config
	NATS    natsbus.Config        // without URLs only the store is opened; with the Key of the cluster, no store
	Archive natsbus.ArchiveConfig // Open sets Cluster
	Logs    natsbus.LogsConfig    // Open sets Cluster
	New     bool                  // create the cluster beside the archive of another one; default: ErrArchived
}

// Opened holds what Open has opened. What the configuration does not name is nil.
type Opened struct {
	Store   store.Store
	Bus     store.Bus
	Archive store.Archive
	Logs    tasklog.Store
}

// Open opens what cfg names. The caller closes store and bus with Close.
func Open(ctx context.Context, cfg Config) (is Opened, err error) {
	name := ""
	if cfg.NATS.Key == nil {
		etcd, err := openStore(ctx, cfg)
		if err != nil {
			return Opened{}, err
		}
		is.Store, name = etcd, etcd.Name()
		id := etcd.Cluster().ID
		cfg.NATS.Key, cfg.Archive.Cluster, cfg.Logs.Cluster = etcd.Cluster().Key, id, id
	}
	if len(cfg.NATS.URLs) == 0 {
		return is, nil
	}
	bus, err := natsbus.Open(cfg.NATS)
	if err != nil {
		return Opened{}, errors.Join(err, Close(is.Store, nil))
	}
	is.Bus = bus
	if is.Store != nil && bus.Name() != name {
		problem := fmt.Sprintf("%s of the bus, want %s as of the store", bus.Name(), name)
		err = &store.InvalidError{Field: "name", Problem: problem}
	} else {
		err = is.inJetStream(bus, cfg)
	}
	if err != nil {
		return Opened{}, errors.Join(err, Close(is.Store, bus))
	}
	return is, nil
}

// inJetStream sets what lies in streams, of which it asks NATS nothing.
func (is *Opened) inJetStream(bus *natsbus.Bus, cfg Config) error {
	archive, err := bus.Archive(cfg.Archive)
	if err != nil {
		return err
	}
	logs, err := bus.Logs(cfg.Logs)
	if err != nil {
		return err
	}
	is.Archive, is.Logs = archive, logs
	return nil
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
