package membus

import (
	"context"
	"sync"

	"taskledger/store"
)

// subscription is one handler.
type subscription struct {
	pattern []string
	queue   string
	handle  func(store.Message)
	stop    context.CancelFunc
	came    chan struct{} // holds one where messages wait

	mu      sync.Mutex
	waiting []store.Message
	bytes   int  // of what waits
	dropped bool // something was not brought, and nobody was told
}

// matches reports whether a subject is one that the handler hears.
func (s *subscription) matches(subject []string) bool {
	for i, token := range s.pattern {
		switch {
		case token == ">":
			return len(subject) > i
		case i >= len(subject) || token != "*" && token != subject[i]:
			return false
		}
	}
	return len(subject) == len(s.pattern)
}

// bring has a message wait for the handler, unless too much does.
func (s *subscription) bring(m store.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= pendingMessages || s.bytes+len(m.Data) > pendingBytes {
		s.dropped = true
		return
	}
	s.waiting, s.bytes = append(s.waiting, m), s.bytes+len(m.Data)
	select {
	case s.came <- struct{}{}:
	default:
	}
}

// run calls the handler until ctx ends, and missed once it has caught up after messages were dropped.
func (s *subscription) run(ctx context.Context, missed func()) {
	for {
		select {
		case <-s.came:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		waiting := s.waiting
		s.waiting, s.bytes = nil, 0
		s.mu.Unlock()
		for _, m := range waiting {
			if ctx.Err() != nil {
				return
			}
			s.handle(m)
		}
		if s.caughtUp() {
			missed()
		}
	}
}

// caughtUp reports whether messages were dropped and none waits any more. It does so once for what was dropped.
func (s *subscription) caughtUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.dropped && len(s.waiting) == 0
	if told {
		s.dropped = false
	}
	return told
}

// listener is told of the connection, once at a time.
type listener struct {
	mu    sync.Mutex
	ended bool
	tell  func(connected bool)
}

func (l *listener) hear(connected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.tell(connected)
	}
}

func (l *listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
