package demo

import (
	"context"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/task"
)

// watched is a behavior that reports the start of each attempt.
type watched struct {
	task.Behavior
	started func(ctx context.Context, a task.Attempt)
}

// Policy gives up soon: what cannot be read now is a finding, not something to wait for.
func (w watched) Policy() task.Policy {
	p := w.Behavior.Policy()
	p.MaxAttempts, p.Backoff = 3, task.Backoff{Base: 50 * time.Millisecond, Max: time.Second}
	return p
}

// Run implements task.Behavior.
func (w watched) Run(ctx context.Context, a task.Attempt) task.Outcome {
	w.started(ctx, a)
	return w.Behavior.Run(ctx, a)
}

var _ task.Behavior = watched{}

func checksum(root string) task.Behavior {
	return builtin.Checksum(builtin.ChecksumOptions{Root: root})
}
