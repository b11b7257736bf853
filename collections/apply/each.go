package apply

import (
	"context"
	"sync"
)

// workers bounds the commands, and the questions, that are under way at once.
const workers = 8

// atOnce calls do for 0 to n-1, some at once, and returns the first error, after which it begins no other call. Calls
// that were begun go on to their end.
func atOnce(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	var mu sync.Mutex
	var first error
	next := 0
	take := func(failed error) (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = failed
		}
		if first != nil || next == n {
			return 0, false
		}
		next++
		return next - 1, true
	}
	var all sync.WaitGroup
	for range min(workers, n) {
		all.Go(func() {
			var err error
			for i, ok := take(nil); ok; i, ok = take(err) {
				if err = ctx.Err(); err != nil {
					err = context.Cause(ctx)
					continue
				}
				err = do(ctx, i)
			}
		})
	}
	all.Wait()
	return first
}
