package sync

import (
	"context"

	"taskledger/api/operations"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
	"taskledger/tasklog"
)

// Runs reads and cancels runs of collections, and reads what they write. A client of a cluster implements it.
type Runs interface {
	Get(ctx context.Context, id events.TaskID) (task.Task, error)
	ListPage(ctx context.Context, f task.Filter, cursor string) (task.Page, error)
	Log(ctx context.Context, id events.TaskID, s tasklog.Selection) (tasklog.Told, error)
	Operate(ctx context.Context, verb operations.Verb, on, reason string) (anew bool, err error)
}

// Schedules reads and steers collections: each is the schedule of its id, of the behavior collections.Behavior.
// operations.Schedules implements it.
type Schedules interface {
	Get(ctx context.Context, name string) (schedule.Schedule, error)
	List(
		ctx context.Context, f schedule.Filter, after string, limit int,
	) (all []schedule.Schedule, more bool, err error)
	Steer(ctx context.Context, verb operations.ScheduleVerb, name, reason string, seen schedule.Version) error
}

// Order asks for a run of a collection.
type Order struct {
	Collection string           // its id
	Key        string           // makes a repetition by the same principal the same order; "" = it is none
	Priority   int64            // of a run that is made; one that is shared keeps its own
	Seen       schedule.Version // of the collection: schedule.ErrChanged for another one
}

// Runner makes runs of collections. Its errors are those of operations.Schedules.Run.
type Runner interface {
	// Run makes a run now, or shares one that has not ended. made reports that this order has made it, or the one that
	// it repeats. The id is one that taskjson.Shown takes.
	Run(ctx context.Context, o Order) (id events.TaskID, made bool, err error)
}

// front answers requests.
type front struct {
	runs      Runs
	schedules Schedules
	runner    Runner
}
