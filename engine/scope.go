package engine

import (
	"context"
	"sync"
)

// scope bounds the goroutines of a session.
type scope struct {
	ctx   context.Context // of the session
	end   context.CancelCauseFunc
	tasks sync.WaitGroup // spawned
}

// spawn runs f, which must end soon after the session, in a goroutine of the session.
func (s *scope) spawn(f func(ctx context.Context)) {
	if s.ctx.Err() != nil {
		return
	}
	s.tasks.Go(func() { f(s.ctx) })
}
