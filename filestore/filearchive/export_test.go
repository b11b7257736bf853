package filearchive

import (
	"errors"

	"taskledger/filestore/internal/disk"
)

// OpenLayer is Open on a file layer, which nobody else uses.
func OpenLayer(l disk.Rewritable, cluster string) (*Archive, error) {
	a, err := LookLayer(l, cluster)
	if err != nil {
		return nil, err
	}
	if err := a.Begin(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// LookLayer is Look on a file layer, which nobody else uses.
func LookLayer(l disk.Rewritable, cluster string) (*Archive, error) {
	a, err := look(l, cluster)
	if err != nil {
		return nil, err
	}
	a.makeReady = a.settle
	return a, nil
}
