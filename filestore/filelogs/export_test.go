package filelogs

import (
	"errors"

	"taskledger/filestore/internal/disk"
)

// OpenLayer is Open on a file layer, which nobody else uses.
func OpenLayer(l disk.Rewritable, cfg Config) (*Logs, error) {
	logs, err := LookLayer(l, cfg)
	if err != nil {
		return nil, err
	}
	if err := logs.Begin(); err != nil {
		return nil, errors.Join(err, logs.Close())
	}
	return logs, nil
}

// LookLayer is Look on a file layer, which nobody else uses.
func LookLayer(l disk.Rewritable, cfg Config) (*Logs, error) {
	logs, _, err := look(l, cfg)
	return logs, err
}
