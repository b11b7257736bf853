// Package mailleft remembers senders that ended while their mail could not be removed.
package mailleft

import "sync"

// most bounds how many senders are remembered.
const most = 100

// Senders are such senders. They are safe for concurrent use; the zero value has none.
type Senders struct {
	mu      sync.Mutex
	senders []string
}

// Add remembers a sender. The mail of one too many is swept.
func (s *Senders) Add(sender string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.senders) < most {
		s.senders = append(s.senders, sender)
	}
}

// Take returns those that are remembered, and forgets them.
func (s *Senders) Take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	senders := s.senders
	s.senders = nil
	return senders
}
