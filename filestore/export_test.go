package filestore

// Topics returns the number of topics with a waiting caller.
func (s *Store) Topics() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.topics)
}
