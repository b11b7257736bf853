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

// Awaited says for which node of a directory Await waits.
type Awaited int

// A node that Starts has its directory already; one that has Stopped may be started again.
const (
	Starts Awaited = iota
	Stopped
	Anything // also where none ever ran
)

// Await calls open, which links to servers, again and again while these are away, until ctx ends: servers restart, and
// etcd may stand still. waiting is called once, after a second without servers.
func Await(
	ctx context.Context, awaited Awaited, open func(context.Context) (*Link, error), waiting func(),
) (*Link, error) {
	began := time.Now()
	var before error
	for {
		link, err := open(ctx)
		switch {
		case err == nil || !away(err, awaited):
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
func away(err error, awaited Awaited) bool {
	switch {
	case errors.Is(err, etcdstore.ErrNoCluster):
		return false
	case errors.Is(err, cluster.ErrNoNode):
		return awaited >= needed(err)
	case errors.Is(err, infiles.ErrInUse): // perhaps a node that starts
		return true
	}
	return errors.Is(err, store.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded)
}

// errNeverServed reports a directory on which no node has ever run.
var errNeverServed = errors.New("none ever did")

// stoppedError reports a directory that no process has.
type stoppedError struct{ error }

// Unwrap returns the error that says that no node runs there.
func (e stoppedError) Unwrap() error { return e.error }

// needed returns the least grade that waits for the node which an error says is not there.
func needed(err error) Awaited {
	switch _, stopped := errors.AsType[stoppedError](err); {
	case errors.Is(err, errNeverServed):
		return Anything
	case stopped:
		return Stopped
	}
	return Starts
}

// absent says of a directory on which no node runs whether one ever did, and whether one may be starting.
func absent(err error, dir string) error {
	if !errors.Is(err, cluster.ErrNoNode) {
		return err
	}
	holds, unseen := infiles.Holds(dir)
	switch {
	case embedded.InUse(dir) || holds && infiles.InUse(dir):
		return err
	case !embedded.Served(dir) && !holds && unseen == nil:
		return fmt.Errorf("%w; %w", err, errNeverServed)
	}
	return stoppedError{err}
}
