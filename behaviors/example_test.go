package behaviors_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/events"
	"taskledger/task"
)

type Purge struct{ Table string }

var purge = behaviors.Define("purge", &behaviors.Rules[Purge, int]{
	Policy: task.Policy{
		Timeout:     time.Minute,
		MaxAttempts: 5,
		Backoff:     task.Backoff{Base: time.Second, Max: time.Minute},
		Every:       time.Hour, // from the end of a run to the next one
	},
	// The id names the table, so a second submit for the same table joins the task that exists.
	TaskID: func(p Purge) events.TaskID { return behaviors.HashID("", "purge", p.Table) },
})

// purgeTable returns the number of rows that it removed.
func purgeTable(ctx context.Context, p Purge) (int, error) {
	rows, err := removeOldRows(ctx, p.Table)
	switch {
	case errors.Is(err, errLocked):
		return 0, behaviors.Snooze(10 * time.Second) // no failure: try again in 10 s
	case errors.Is(err, errNoTable):
		return 0, behaviors.Cancel(err) // this run fails for good
	}
	return rows, err // any other error is a failed attempt, which the policy retries
}

var (
	errLocked  = errors.New("table is locked")
	errNoTable = errors.New("no such table")
)

func removeOldRows(_ context.Context, table string) (int, error) {
	if table != "sessions" {
		return 0, errNoTable
	}
	return 42, nil
}

// A table is purged every hour. The clock is the example's own, so that the hour passes at once.
func Example() {
	ctx := context.Background()
	var ahead atomic.Int64
	node, err := embedded.StartWith(ctx, embedded.Config{Node: engine.NodeConfig{
		Behaviors: []task.Behavior{purge.Bind(purgeTable)},
		Now:       func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	first, _ := purge.Submit(ctx, node, Purge{Table: "sessions"}) // an error comes back from Wait as well
	fmt.Println(first.Wait(ctx))
	second, _ := purge.Submit(ctx, node, Purge{Table: "sessions"}) // joins the run that is due in an hour
	ahead.Store(int64(time.Hour))
	fmt.Println(second.Wait(ctx))
	misspelt, _ := purge.Submit(ctx, node, Purge{Table: "session"})
	_, err = misspelt.Wait(ctx)
	if failure, ok := errors.AsType[*task.Error](err); ok {
		fmt.Println(failure.Attempt, failure.Message)
	}
	// Output:
	// 42 <nil>
	// 42 <nil>
	// 1 no such table
}
