// Package logsweep removes the logs of tasks that are gone: those of deleted tasks at once, as far as that works, and
// whatever else is left by a sweep over each shard. Nothing in the journal says which tasks have a log, and a
// retention may forget many thousands a second, so the store is asked what it has.
package logsweep

import (
	"context"
	"log/slog"
	"time"

	"taskledger/engine/internal/notice"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/tasklog"
)

// maxDeleted bounds the deleted tasks whose logs are to be removed. Those of more are left to the sweep.
const maxDeleted = 1024

// Sweep removes logs for a node.
type Sweep struct {
	of      tasklog.Store // nil: there are no logs
	now     func() time.Time
	notices *notice.Log
	deleted chan life
	busy    chan struct{} // has a value while a shard is swept: the node sweeps one at a time
}

type life struct {
	shard uint16
	ref   events.Ref
}

// New returns what removes logs from a store; nil = there is none. It starts nothing.
func New(of tasklog.Store, now func() time.Time, log *slog.Logger) *Sweep {
	return &Sweep{
		of:      of,
		now:     now,
		notices: notice.New(log),
		deleted: make(chan life, maxDeleted),
		busy:    make(chan struct{}, 1),
	}
}

// Deleted takes the outcomes of a committed entry of a shard, and has Run remove the logs of the tasks that were
// deleted. It never waits.
func (s *Sweep) Deleted(shard int, outcomes []outcome.Outcome) {
	if s.of == nil {
		return
	}
	for i := range outcomes {
		if o := &outcomes[i]; o.Status == 0 && o.Attempt > 0 {
			select {
			case s.deleted <- life{uint16(shard), o.Life}:
			default:
			}
		}
	}
}

// Run removes the logs of deleted tasks until ctx ends.
func (s *Sweep) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-s.deleted:
			s.forget(ctx, l.shard, l.ref)
		}
	}
}

// forget removes the logs of a life, and reports whether that has worked.
func (s *Sweep) forget(ctx context.Context, shard uint16, ref events.Ref) bool {
	err := s.of.Forget(ctx, shard, ref, 0)
	s.tell(ctx, err)
	return err == nil
}

func (s *Sweep) tell(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		s.notices.Say(slog.LevelWarn, "logs of tasks that are gone will be removed later", "err", err)
	}
}

// alone runs f, unless ctx ends before the node sweeps no other shard.
func (s *Sweep) alone(ctx context.Context, f func()) {
	select {
	case s.busy <- struct{}{}:
		f()
		<-s.busy
	case <-ctx.Done():
	}
}
