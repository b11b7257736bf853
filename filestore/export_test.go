package filestore

// Topics returns how many topics somebody waits for.
func (s *Store) Topics() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.topics)
}
