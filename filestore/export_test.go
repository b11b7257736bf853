package filestore

import (
	"taskledger/filestore/filejournal"
	"taskledger/filestore/journal"
)

// Topics returns the number of topics with a waiting caller.
func (s *Store) Topics() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.topics)
}

// GiveRevisions gives revisions to writes, without reserving any, and returns how many are reserved and not given.
func (s *Store) GiveRevisions(n int64) (left int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision += n
	return s.notes.Revisions - s.revision
}

// BoundMail bounds the mailboxes.
func (s *Store) BoundMail(bytes int) { s.maxMail = bytes }

// Mail returns the bytes of the mailboxes.
func (s *Store) Mail() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mail
}

// OpenLooked is Open on a journal that was looked at, and that the caller closes.
func OpenLooked(j *filejournal.Journal, cfg Config) (*Store, error) { return newStore(j, cfg, j.Begin) }

// OpenLookedWith is OpenLooked on a journaler that begin makes ready.
func OpenLookedWith(j journal.Journaler, cfg Config, begin func() error) (*Store, error) {
	return newStore(j, cfg, begin)
}
