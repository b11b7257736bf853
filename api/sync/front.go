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

// Schedules reads, steers and runs collections: each is the schedule of its id, of the behavior collections.Behavior.
// operations.Schedules implements it.
type Schedules interface {
	Get(ctx context.Context, name string) (schedule.Schedule, error)
	List(
		ctx context.Context, f schedule.Filter, after string, limit int,
	) (all []schedule.Schedule, more bool, err error)
	Steer(ctx context.Context, verb operations.ScheduleVerb, name, reason string, seen schedule.Version) error
	RunWith(
		ctx context.Context, name string, is schedule.ByHand, seen schedule.Version,
	) (operations.Handle, error)
}

// front answers requests.
type front struct {
	runs      Runs
	schedules Schedules
}
