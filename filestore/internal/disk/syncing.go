package disk

import "sync"

// Syncing makes the syncs of a file that is written at its end, one at a time. A disk tells of a write that failed to
// one sync of an open file alone, so every later one returns what that did. The zero value is ready.
type Syncing struct {
	mu    sync.Mutex
	err   error // of the first sync that failed
	ended bool
}

// Sync syncs the file, after the syncs of it that are under way.
func (s *Syncing) Sync(f File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && !s.ended {
		s.err = f.Sync()
	}
	return s.err
}

// End says that nothing more is written and all is synced, so that the file may be closed: whoever has yet to sync it
// finds nothing to do.
func (s *Syncing) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}
