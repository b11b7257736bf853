package work

import (
	"context"
	"fmt"

	"taskledger/work/internal/threads"
)

// run implements flow.
func (s *flowOf[P, C]) run(ctx context.Context, of current[P]) error {
	position, err := of.record.Position(ctx)
	if err != nil {
		return ended(ctx, fmt.Errorf("asking where stream %s begins: %w", of.plan.ID, err))
	}
	if s.Batch > 0 && position.Counted >= s.Batch { // an attempt has ended behind the last change that the run takes
		return nil
	}
	r := &streamRun[P, C]{
		flowOf:   s,
		current:  of,
		position: position,
		mover:    newMover(of.record, position),
		later:    threads.NewLater[*arrival[C]](),
	}
	r.tally.tells(of.tell)
	if s.Source != nil {
		run := &pushed[P, C]{streamRun: r}
		return run.run(ctx)
	}
	run := &live[P, C]{streamRun: r}
	return run.run(ctx)
}
