package engine

import (
	"context"
	"fmt"
	"time"

	"taskledger/engine/internal/asker"
	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
)

// pending waits for one answer at a time.
type pending struct{ got chan reply }

type reply struct {
	a   command.Answer
	err error
}

func newPending() any { return &pending{make(chan reply, 1)} }

func (w *pending) answered(a command.Answer, err error) { w.got <- reply{a, err} }

// WithAsker puts the caller of a service beside every command that is sent with the context, so that the journal tells who asked: the
// asker's principal takes the place of the client's, and its request id and traceparent stand in every event that the command
// causes. A command is refused with an *InvalidError when a text of the asker is too long (256 bytes) or no UTF-8. It changes
// nothing of what the caller may do.
func WithAsker(ctx context.Context, a events.Asker) context.Context { return asker.With(ctx, a) }

// ask sends a command and waits for its answer. When ctx ends before it was sent nothing was accepted, and the error
// wraps ErrUnavailable; after that it wraps ErrUnknown. So it is when no node is alive for a while.
func (r *router) ask(ctx context.Context, shard int, laneID uint8, c command.Command) (command.Answer, error) {
	by, err := asker.Of(ctx)
	if err != nil {
		return command.Answer{}, err
	}
	w := r.pending.Get().(*pending)
	if err := r.sendCall(shard, laneID, call{command: c, caller: w, asker: by, awaits: task.AwaitsNodes(ctx)}); err != nil {
		return command.Answer{}, err
	}
	if r.closed.Load() && r.withdraw(shard, laneID, c) { // whoever fails those that wait may have been here before
		return command.Answer{}, ErrClosed
	}
	select {
	case g := <-w.got:
		r.pending.Put(w)
		return g.a, g.err
	case <-ctx.Done():
		return command.Answer{}, r.giveUp(ctx, shard, laneID, c)
	}
}

// giveUp is what a caller is told whose context has ended.
func (r *router) giveUp(ctx context.Context, shard int, laneID uint8, c command.Command) error {
	if r.withdraw(shard, laneID, c) {
		return fmt.Errorf("%w: %w", ErrUnavailable, r.lookout.Why(ctx))
	}
	return fmt.Errorf("%w: %w", ErrUnknown, r.lookout.Why(ctx))
}

// overloaded refuses a submit that would wait too long.
func overloaded(shard int) error {
	return &OverloadError{Cause: fmt.Sprintf("too many commands wait for shard %d", shard), RetryAfter: time.Second}
}

// askTask is ask for a task's shard.
func (r *router) askTask(ctx context.Context, id events.TaskID, laneID uint8, c command.Command) (command.Answer, error) {
	return r.ask(ctx, id.Shard(len(r.lanes)), laneID, c)
}
