package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/record"
	"taskledger/integration/robustness/role"
)

// callWithin bounds a read of the observer.
const callWithin = 3 * time.Second

// observer is a client of the engine in this process, that no fault touches: it reads what the others have made.
type observer struct {
	*role.Connection
	log *os.File
}

func (r *run) startObserver(ctx context.Context) error {
	l, err := r.newLinks(nil)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(r.dir, "observer.log"))
	if err != nil {
		return err
	}
	r.observer.log = log
	r.observer.Connection, err = role.Connect(ctx, role.Role{Name: "observer", Etcd: l.endpoints(), NATS: l.natsURL(), Shards: record.Shards, Archive: r.archives()},
		slog.New(slog.NewTextHandler(log, nil)), func(err error) { r.broken(check.Clean, "a client in the driver ended by itself: %v", err) })
	return err
}

func (o *observer) stop() error {
	if o.log == nil {
		return nil
	}
	var err error
	if o.Connection != nil {
		err = o.Close()
	}
	return errors.Join(err, o.log.Close())
}
