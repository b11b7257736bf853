package connect

import (
	"context"
	"errors"
	"fmt"

	"taskledger/api/remote"
	"taskledger/cluster"
	"taskledger/cmd/node/internal/infiles"
	"taskledger/filestore"
	"taskledger/internal/advertised"
	"taskledger/store"
)

// ToFiles links by the HTTP API to the node that runs on dir, if its store is in files: no other process can open that.
// The link has an API, and no Cluster. It is nil where dir advertises no such node. It wraps cluster.ErrNoNode when the
// node is gone, infiles.ErrInUse where a program runs on dir that has no API, and what keeps dir from being seen.
// Of a, Cluster and ID count.
func ToFiles(ctx context.Context, dir string, a Addresses) (*Link, error) {
	holds, err := infiles.Holds(dir)
	if err == nil && holds {
		err = infiles.CheckFree(dir)
	}
	if err != nil {
		return nil, err
	}
	at, err := advertised.Read(dir)
	if err != nil || at.Store != advertised.InFiles {
		return nil, nil //nolint:nilerror // what else is wrong with the directory is told by whoever opens it
	}
	if a.Cluster != "" {
		const problem = "the store on %s is in files, and holds one cluster, without a name"
		return nil, &store.InvalidError{Field: "cluster", Problem: fmt.Sprintf(problem, dir)}
	}
	url := at.URL
	if path := at.Socket(); path != "" {
		url = "unix:" + path
	}
	if url == "" {
		return nil, fmt.Errorf("%w: the node on %s has no HTTP API, which alone reaches a store in files",
			store.ErrUnavailable, dir)
	}
	client, err := remote.Open(ctx, remote.Options{
		URL:   url,
		Token: at.Token,
		Renew: func() string { // a node draws it at each start
			now, err := advertised.Read(dir)
			if err != nil { // it has just stopped
				return ""
			}
			return now.Token
		},
	})
	switch {
	case errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil: // a killed node leaves its addresses behind
		return nil, absent(fmt.Errorf("%w on %s any more: %w", cluster.ErrNoNode, dir, err), dir)
	case err != nil:
		return nil, err
	}
	if is := client.Cluster(); a.ID != "" && is != a.ID {
		client.Close()
		return nil, fmt.Errorf("%w: on %s is %s, expected is %s", filestore.ErrOtherCluster, dir, is, a.ID)
	}
	return &Link{API: client}, nil
}
