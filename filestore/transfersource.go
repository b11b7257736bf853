package filestore

import (
	"errors"
	"fmt"

	"taskledger/filestore/filejournal"
)

// OpenToCopy is OpenToRead for a copy of the store. It wraps ErrUnsettled where entries that were answered may be
// missing: a copy would give their numbers anew.
func OpenToCopy(dir, id string) (*Store, error) {
	j, err := filejournal.OpenToRead(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := readStore(j, id)
	if err == nil {
		err = s.Unsettled()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store in %s: %w", dir, err), j.Close())
	}
	s.close, s.durable = j.Close, string(j.Durability())
	return s, nil
}

// Unsettled returns an error that wraps ErrUnsettled where entries that were answered may be missing in a store that
// was opened to be read, and nil where none are.
func (s *Store) Unsettled() error {
	files, is := s.journal.(*filejournal.Journal)
	mayHaveLost := is && files.MayHaveLost()
	for i := range s.shards {
		if mayHaveLost || s.notes.of(i).Taking != nil {
			return ErrUnsettled
		}
	}
	return nil
}
