package workcli

import (
	"context"
	"time"

	"taskledger/api/operations"
	"taskledger/events"
)

const (
	// bucketsWithin bounds the time for which a suspend waits for the open buckets of a work.
	bucketsWithin = 10 * time.Second
	// shortestLook is the first pause between two looks; each is twice as long as the one before, up to longestLook.
	shortestLook = 50 * time.Millisecond
	longestLook  = time.Second
)

// AwaitBuckets waits until no bucket of a suspended work is open, 10 s at most, and returns how many are; -1 = nobody
// could tell. A task without a work has none, which absent tells of an error. sleep returns early when its ctx ends.
func AwaitBuckets(
	ctx context.Context, works operations.Works, id events.TaskID, absent func(error) bool,
	sleep func(context.Context, time.Duration),
) (open int) {
	ctx, cancel := context.WithTimeout(ctx, bucketsWithin)
	defer cancel()
	open = -1
	for rest := shortestLook; ; rest = min(2*rest, longestLook) {
		w, err := works.WorkLinear(ctx, id)
		switch {
		case err != nil && absent(err):
			return 0
		case err == nil:
			open = len(w.Open)
		}
		if open == 0 || ctx.Err() != nil {
			return open
		}
		sleep(ctx, rest)
	}
}
