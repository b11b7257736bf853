package engine

import (
	"context"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// asker waits for one answer at a time.
type asker struct{ got chan reply }

type reply struct {
	a   command.Answer
	err error
}

func newAsker() any { return &asker{make(chan reply, 1)} }

func (w *asker) answered(a command.Answer, err error) { w.got <- reply{a, err} }

// ask sends a command and waits for its answer. When ctx ends before it was sent nothing was accepted, and the error
// wraps ErrUnavailable; after that it wraps ErrUnknown.
func (r *router) ask(ctx context.Context, shard int, laneID uint8, c command.Command) (command.Answer, error) {
	w := r.askers.Get().(*asker)
	if err := r.send(shard, laneID, c, w); err != nil {
		return command.Answer{}, err
	}
	if r.closed.Load() && r.withdraw(shard, laneID, c) { // whoever fails those that wait may have been here before
		return command.Answer{}, ErrClosed
	}
	select {
	case g := <-w.got:
		r.askers.Put(w)
		return g.a, g.err
	case <-ctx.Done():
		if r.withdraw(shard, laneID, c) {
			return command.Answer{}, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
		}
		return command.Answer{}, fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	}
}

// overloaded refuses a submit that would wait too long.
func overloaded(shard int) error {
	return &OverloadError{Cause: fmt.Sprintf("too many commands wait for shard %d", shard), RetryAfter: time.Second}
}

// askTask is ask for a task's shard.
func (r *router) askTask(ctx context.Context, id events.TaskID, laneID uint8, c command.Command) (command.Answer, error) {
	return r.ask(ctx, id.Shard(len(r.lanes)), laneID, c)
}
