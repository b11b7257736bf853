package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/cluster"
	"taskledger/cmd/node/internal/infiles"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/store"
)

const (
	againAfter = 100 * time.Millisecond // between two tries
	tellAfter  = time.Second
)

// Await calls open, which links to servers, again and again while these are away, until ctx ends: servers restart, and
// etcd may stand still. waiting is called once, after a second without servers.
func Await(ctx context.Context, open func(context.Context) (*Link, error), waiting func()) (*Link, error) {
	began := time.Now()
	var before error
	for {
		link, err := open(ctx)
		switch {
		case err == nil || !away(err):
			return link, err
		case ctx.Err() != nil && before != nil:
			return nil, before // which says more than that the time is over
		case ctx.Err() != nil:
			return nil, err
		}
		before = err
		if waiting != nil && time.Since(began) >= tellAfter {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(againAfter):
		}
	}
}

// away reports whether servers may answer later that do not now. What they have refused, and a connection that TLS
// refused, stays refused.
func away(err error) bool {
	switch {
	case errors.Is(err, etcdstore.ErrNoCluster):
		return false
	case errors.Is(err, cluster.ErrNoNode):
		return !errors.Is(err, errNeverServed)
	case errors.Is(err, infiles.ErrInUse): // perhaps a node that starts
		return true
	}
	return errors.Is(err, store.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded)
}

// errNeverServed reports a directory on which no node has ever run.
var errNeverServed = errors.New("none ever did")

// neverServed says so of a directory on which no node runs.
func neverServed(err error, dir string) error {
	holds, unseen := infiles.Holds(dir)
	if errors.Is(err, cluster.ErrNoNode) && !embedded.Served(dir) && !holds && unseen == nil {
		return fmt.Errorf("%w; %w", err, errNeverServed)
	}
	return err
}
