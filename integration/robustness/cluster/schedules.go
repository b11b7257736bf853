package cluster

import (
	"context"
	"time"

	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/task"
)

const (
	// listWithin bounds a list, listAgain is the pause before the next one.
	listWithin = 3 * time.Second
	listAgain  = 100 * time.Millisecond
	// listedRuns is the number of runs of a page.
	listedRuns = 1000
)

// endSchedules has somebody delete all schedules, since they would go on for ever, and returns their runs that have
// not ended.
func endSchedules(
	ctx context.Context, c *Connection, ask func(context.Context, traffic.Request) error,
) (runs []string, err error) {
	for ; ctx.Err() == nil; Sleep(ctx, listAgain) {
		look, cancel := context.WithTimeout(ctx, listWithin)
		names, failed := traffic.ScheduleNames(look, c.Client)
		cancel()
		if failed == nil && len(names) == 0 {
			break
		}
		for _, name := range names {
			end := traffic.Request{Verb: history.DeleteSchedule, Schedule: &traffic.Timing{Name: name}}
			if err := ask(ctx, end); err != nil && ctx.Err() == nil {
				return nil, err
			}
		}
	}
	for _, t := range list(ctx, c, runsOfSchedules) {
		if !t.Final() {
			runs = append(runs, string(t.ID))
		}
	}
	return runs, nil
}

// RunsOfSchedules returns the runs of schedules that are listed.
func RunsOfSchedules(ctx context.Context, c *Connection) (ids []string) {
	return idsOf(list(ctx, c, runsOfSchedules))
}

// Errands returns the tasks of works and streams: those that somebody submitted, and those that were made for them.
func Errands(ctx context.Context, c *Connection) (ids []string) {
	for _, behavior := range []string{traffic.ErrandID, traffic.BrookID} {
		ids = append(ids, idsOf(list(ctx, c, task.Filter{Behavior: behavior, Limit: listedRuns}))...)
	}
	return ids
}

func idsOf(all []task.Task) (ids []string) {
	for i := range all {
		ids = append(ids, string(all[i].ID))
	}
	return ids
}

// runsOfSchedules selects the tasks below the names of schedules.
var runsOfSchedules = task.Filter{AffinityPrefix: traffic.SchedulePrefix, Limit: listedRuns}

// list lists tasks, again until every shard answers or ctx ends, which others tell.
func list(ctx context.Context, c *Connection, which task.Filter) []task.Task {
	for ; ctx.Err() == nil; Sleep(ctx, listAgain) {
		if all, err := listOnce(ctx, c, which); err == nil {
			return all
		}
	}
	return nil
}

func listOnce(ctx context.Context, c *Connection, which task.Filter) (all []task.Task, err error) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	for t, err := range c.List(ctx, which) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}
