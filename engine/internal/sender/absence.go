package sender

import (
	"fmt"
	"slices"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/liveness"
	"taskledger/store"
	"taskledger/task"
)

var (
	errUnknown = task.ErrUnknown
	errClosed  = task.ErrClosed
	// ErrNoNode reports that nothing was accepted, or answered, because no node is alive.
	ErrNoNode = fmt.Errorf("%w: %w", store.ErrUnavailable, task.ErrNoNode)
)

// nodesMissed fails callers that have waited as long as no node has been alive, once that exceeds a timeout. It
// returns when to read the membership again for the others. Batches under way go on, for whatever node comes.
func (s *Sender) nodesMissed(since time.Time) (again time.Duration) {
	long, now := time.Since(since), time.Since(base)
	for shard := range s.lanes {
		for _, laneID := range []uint8{command.LaneSubmit, command.LaneQuery} {
			var unsent, sent Flight
			l := &s.lanes[shard][laneID]
			overdue := func(c *Call) bool {
				is := c.Waiter != nil && !c.Awaits && min(long, now-c.since) >= liveness.Timeout
				switch {
				case is || c.Waiter == nil:
				case !c.Awaits:
					again = liveness.Again
				case again == 0:
					again = liveness.Later
				}
				return is
			}
			l.mu.Lock()
			l.waiting = slices.DeleteFunc(l.waiting, func(c Call) bool {
				is := overdue(&c)
				if is {
					unsent.calls = append(unsent.calls, c)
				}
				return is
			})
			if l.flight != nil {
				for i := range l.flight.calls {
					if c := &l.flight.calls[i]; overdue(c) {
						sent.calls = append(sent.calls, *c)
						c.Waiter = nil
					}
				}
			}
			l.mu.Unlock()
			unsent.fail(ErrNoNode)
			if laneID == command.LaneQuery { // it changes nothing
				sent.fail(ErrNoNode)
			} else {
				sent.fail(fmt.Errorf("%w: %w", errUnknown, task.ErrNoNode))
			}
		}
	}
	return again
}

// release lets what waited for a node leave.
func (s *Sender) release() {
	for shard := range s.lanes {
		s.leave(shard, command.LaneSubmit)
		s.leave(shard, command.LaneQuery)
	}
}
