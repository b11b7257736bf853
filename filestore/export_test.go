package filestore

import "taskledger/filestore/filejournal"

// Topics returns the number of topics with a waiting caller.
func (s *Store) Topics() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.topics)
}

// OpenLooked is Open on a journal that was looked at, and that the caller closes.
func OpenLooked(j *filejournal.Journal, cfg Config) (*Store, error) { return newStore(j, cfg, j.Begin) }
