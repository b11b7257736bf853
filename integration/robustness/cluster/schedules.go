package cluster

import (
	"context"
	"time"

	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/task"
)

const (
	// listedSchedules is the number of schedules of a page, which are more than there are.
	listedSchedules = 100
	// listedRuns is the number of runs of a page.
	listedRuns = 1000
	// listAgain is the pause before they, or their runs, are listed again.
	listAgain = 100 * time.Millisecond
)

// endSchedules deletes all schedules, since they would go on for ever, and returns their runs that have not ended.
func (r *Cluster) endSchedules(ctx context.Context) (runs []string, err error) {
	if len(r.Clients) == 0 {
		return nil, nil
	}
	for ; ctx.Err() == nil; clock.Sleep(ctx, listAgain) {
		ask, cancel := context.WithTimeout(ctx, callWithin)
		all, _, failed := r.Observer.Schedules().List(ask, "", listedSchedules)
		cancel()
		if failed == nil && len(all) == 0 {
			break
		}
		for i := range all {
			end := traffic.Request{Verb: history.DeleteSchedule, Schedule: &traffic.Timing{Name: all[i].Name}}
			if err := r.Clients[0].Ask(ctx, end); err != nil && ctx.Err() == nil {
				return nil, err
			}
		}
	}
	for _, t := range r.runs(ctx) {
		if !t.Final() {
			runs = append(runs, string(t.ID))
		}
	}
	return runs, nil
}

// Runs returns the runs of schedules that are listed.
func (r *Cluster) Runs(ctx context.Context) (ids []string) {
	for _, t := range r.runs(ctx) {
		ids = append(ids, string(t.ID))
	}
	return ids
}

// runs lists the runs of schedules, again until every shard answers or ctx ends.
func (r *Cluster) runs(ctx context.Context) []task.Task {
	for ; ctx.Err() == nil; clock.Sleep(ctx, listAgain) {
		if all, err := r.listRuns(ctx); err == nil {
			return all
		}
	}
	return nil // it is too late, which others tell
}

func (r *Cluster) listRuns(ctx context.Context) (all []task.Task, err error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	for t, err := range r.Observer.List(ctx, task.Filter{AffinityPrefix: traffic.SchedulePrefix, Limit: listedRuns}) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}
