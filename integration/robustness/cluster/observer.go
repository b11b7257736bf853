package cluster

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"taskledger/integration/robustness/check"
)

// callWithin bounds a read of the observer.
const callWithin = 3 * time.Second

// startObserver starts a client of the engine in this process, that no fault touches: it reads what the others have
// made.
func (r *Cluster) startObserver(ctx context.Context) error {
	l, err := r.NewLinks(nil)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(r.Dir, "observer.log"))
	if err != nil {
		return err
	}
	broken := func(err error) { r.Broken(check.Clean, "a client in the driver ended by itself: %v", err) }
	r.Observer, err = connect(ctx, Role{
		Name:    "observer",
		Etcd:    l.endpoints(),
		NATS:    l.natsURL(),
		Shards:  Shards,
		Archive: r.Archives(),
	}, slog.New(slog.NewTextHandler(log, nil)), broken)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	r.Observer.close = slices.Insert(r.Observer.close, 0, log.Close) // it is closed last
	return nil
}
