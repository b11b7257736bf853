package api

import (
	"context"

	"golang.org/x/sync/semaphore"
)

const (
	// maxBody bounds the body of every route.
	maxBody = 4 << 20
	// maxBodies bounds the bytes of large bodies in memory.
	maxBodies = parts * maxBody
	// largeAtOnce bounds the answers of Large routes that are made at the same time.
	largeAtOnce = 8
	// maxAnswers bounds the bytes of large answers in memory while their readers read.
	maxAnswers = 48 << 20
	// One principal may take one part of each budget, of so many.
	parts = 4
)

// budgets bound the memory of requests: those of all callers together, or those of one caller.
type budgets struct {
	bodies  *semaphore.Weighted // bytes of request bodies in memory
	large   *semaphore.Weighted // answers of Large routes in the making
	answers *semaphore.Weighted // bytes of large answers that are being written
}

// newBudgets returns a part of the budgets: divided by 1 for all callers, and by parts for one of them.
func newBudgets(divisor int64) budgets {
	return budgets{
		bodies:  semaphore.NewWeighted(maxBodies / divisor),
		large:   semaphore.NewWeighted(largeAtOnce / divisor),
		answers: semaphore.NewWeighted(maxAnswers / divisor),
	}
}

// take takes so much of each budget, or nothing of any.
func take(ctx context.Context, n int64, of ...*semaphore.Weighted) error {
	for i, budget := range of {
		if budget.TryAcquire(n) {
			continue
		}
		if err := budget.Acquire(ctx, n); err != nil {
			giveBack(n, of[:i]...)
			return err
		}
	}
	return nil
}

func giveBack(n int64, to ...*semaphore.Weighted) {
	for _, budget := range to {
		budget.Release(n)
	}
}
