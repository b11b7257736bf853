package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// spent sums how long the parts of checks took: the lanes together.
type spent struct {
	mu sync.Mutex
	of map[string]time.Duration
}

// since adds the time since a part began.
func (s *spent) since(part string, began time.Time) {
	took := time.Since(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]time.Duration{}
	}
	s.of[part] += took
}

// tell prints the sums.
func (s *spent) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range slices.Sorted(maps.Keys(s.of)) {
		fmt.Printf("%.1f s: %s\n", s.of[part].Seconds(), part)
	}
}
