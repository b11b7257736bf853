package integration_test

import (
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// The owner and the worker of a shard disagree about the time, or its last entry is of a clock that was ahead. What a
// behavior asks for by its errors and rules is a wait all the same.
func TestClock_WrongOnesDoNotChangeWaits(t *testing.T) {
	t.Parallel()
	const wait = 300 * time.Millisecond
	var ahead atomic.Int64 // the owner's clock, of the worker's
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams,
		Policy: task.Policy{MaxAttempts: 3},
		AfterSuccess: func(_, result string, now time.Time) time.Time {
			if result == "done" {
				return time.Time{}
			}
			return now.Add(wait)
		}})
	n := testcluster.New(t, testcluster.Options{NoNATS: true}).StartNode("a", func(cfg *engine.NodeConfig) {
		cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}, w.on("a"))
	for _, c := range []struct {
		task        string
		first, then time.Duration
	}{
		{"worker-ahead", -time.Hour, -time.Hour},
		{"worker-behind", 30 * time.Second, 30 * time.Second},
		{"shard-ahead", time.Hour, 0},
	} {
		t.Run(c.task, func(t *testing.T) {
			ahead.Store(int64(c.first))
			w.submit(t, n, c.task)
			run := w.next(t)
			ahead.Store(int64(c.then))
			run.fail(behaviors.RetryAfter(wait, errNoLuck))
			w.next(t).succeed("again")
			w.next(t).succeed("done")
			awaitTask(t, n, idFromParams(c.task), "has run twice", func(task task.Task) bool { return task.Runs == 2 && task.Due() == 0 })
			for at, i := startedAt(t, n.Client, idFromParams(c.task)), 1; i < 3; i++ {
				if took := at[i].Sub(at[i-1]); took < wait {
					t.Errorf("attempt %d started %s after the one before, want %s at least", i+1, took, wait)
				}
			}
		})
	}
}
