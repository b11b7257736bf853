package cluster

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"taskledger/integration/robustness/check"
)

// callWithin bounds a read of the observer.
const callWithin = 3 * time.Second

// observer is a client of the engine in this process, that no fault touches: it reads what the others have made.
type observer struct {
	*Connection
	log *os.File
}

func (r *Cluster) startObserver(ctx context.Context) error {
	l, err := r.NewLinks(nil)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(r.Dir, "observer.log"))
	if err != nil {
		return err
	}
	r.Observer.log = log
	r.Observer.Connection, err = connect(ctx, Role{Name: "observer", Etcd: l.endpoints(), NATS: l.natsURL(), Shards: Shards, Archive: r.Archives()},
		slog.New(slog.NewTextHandler(log, nil)), func(err error) { r.Broken(check.Clean, "a client in the driver ended by itself: %v", err) })
	return err
}

// Stop ends the observer.
func (o *observer) Stop() error {
	if o.log == nil {
		return nil
	}
	var err error
	if o.Connection != nil {
		err = o.Close()
	}
	return errors.Join(err, o.log.Close())
}
