package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/internal/measure"
	"taskledger/task"
)

const manyInFlight = 1000 // tasks under way in either loop

// BenchmarkMany compares a caller who submits many tasks together, waits for all of them and begins again with a closed
// loop of single submits.
func BenchmarkMany(b *testing.B) {
	run(b, func(tb testing.TB) figures {
		p := pairOf(tb, servers(tb, 0), manyInFlight, runs(), runs(noop))
		single := loadOf(p.Node, manyInFlight)
		together := measure.Closed(1, manyInFlight, submitMany(p.Client, manyInFlight))
		warm(tb, single, together)
		all := byTurns(tb, lasts(4*time.Second, 12*time.Second), together, single)
		f := newFigures(tb)
		f.tasks("task", all[0].Sum())
		f.tasks("single-task", all[1].Sum())
		// Tasks that are submitted together are made as fast as single ones, or faster.
		f.atLeast("ratio", measure.Ratio(all[0], all[1]), 0.8)
		return f
	})
}

// submitMany returns the turn of a caller who submits so many noop tasks together and waits for each.
func submitMany(c *engine.Client, size int) measure.Op {
	requests := make([]task.Request, size)
	for i := range requests {
		requests[i].Behavior = noop
	}
	return func(ctx context.Context, _ int) error {
		results := c.SubmitMany(ctx, requests, task.ManyOptions{})
		for i := range results {
			r := &results[i]
			if r.Err != nil {
				return fmt.Errorf("submit many: %w", r.Err)
			}
			if _, err := r.Wait(ctx); err != nil {
				return fmt.Errorf("wait for %s: %w", r.ID(), err)
			}
		}
		return nil
	}
}
