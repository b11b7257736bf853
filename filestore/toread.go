package filestore

import (
	"errors"
	"fmt"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/journal"
)

// ErrReadOnly reports a write to a store that was opened to be read.
var ErrReadOnly = filejournal.ErrReadOnly

// OpenToRead opens the store in the files of a directory to read what is there: nothing changes, and what only a node
// can do after a crash is left to the next one. No node can join: every write is refused with ErrReadOnly. It wraps
// ErrOtherCluster where id is not "" and the store has another id, filejournal.ErrInUse while a node runs on the
// directory, and what else filejournal.OpenToRead wraps.
func OpenToRead(dir, id string) (*Store, error) {
	j, err := filejournal.OpenToRead(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := readStore(j, id)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store in %s: %w", dir, err), j.Close())
	}
	s.close, s.durable = j.Close, string(j.Durability())
	return s, nil
}

func readStore(j journal.Journaler, id string) (*Store, error) {
	n, err := readNotes(j)
	if err != nil {
		return nil, err
	}
	if err := checkNotes(n, Config{ID: id}); err != nil {
		return nil, err
	}
	if n == nil {
		return nil, fmt.Errorf("%w: it has no notes of a store", ErrFormat)
	}
	s := makeStore(j, n, defaultQuota)
	s.broken = ErrReadOnly
	return s, s.loadAll()
}
