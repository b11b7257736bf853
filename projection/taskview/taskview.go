// Package taskview converts the fold of a task, projection.Task, into the task.Task that callers get. It is pure.
package taskview

import (
	"slices"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// Of returns a task, in a cluster of so many shards, as it is at a time.
func Of(t *projection.Task, shards int, now events.Millis) task.Task {
	v := task.Task{
		ID:        t.ID,
		Version:   events.Position{Shard: uint16(t.ID.Shard(shards)), Ref: t.Last},
		Status:    t.Status,
		Priority:  t.Priority,
		Suspended: t.Suspended,
		Cancelled: t.Cancelled,
		Forgotten: t.Forgotten,
		Attempts: task.Attempts{
			Attempt:  t.Attempt,
			Failures: t.Failures,
			Lost:     t.Lost,
			Runs:     t.Runs,
		},
		Place: task.Place{
			Node:     store.NodeName(t.Node),
			Session:  t.Node,
			LastNode: t.LastNode.String(),
		},
		Times: task.Times{
			CreatedAt:         t.CreatedAt,
			ScheduleNotBefore: t.ScheduleNotBefore(),
			StartedAt:         t.StartedAt,
			RecheckNotBefore:  t.RecheckNotBefore(),
			LostNotBefore:     t.LostNotBefore(),
			EndedAt:           t.EndedAt,
			Deadline:          t.Deadline(),
		},
		Tags:     slices.Clone(t.Tags()),
		Params:   t.Params.Readable(),
		Result:   t.Result.Readable(),
		Error:    t.Error,
		ErrorCut: t.ErrorElided,
		Details: task.Details{
			At:       now,
			Life:     t.Created,
			Seq:      t.Seq,
			Started:  t.Started,
			RunEnded: t.RunEnded,

			ParamsElided: t.ParamsElided,
			ResultElided: t.ResultElided,
		},
	}
	v.Substatus, v.Since = t.Substatus(now)
	if w := t.Wait; w != nil {
		v.SuspendedAt = w.SuspendedAt
		v.Interventions = task.Interventions{
			AskedBy:      w.By,
			Reason:       w.Reason,
			SuspendedBy:  w.SuspendedBy,
			SuspendedFor: w.SuspendedFor,
		}
		v.Details.Cause, v.Details.WaitsSince = w.Cause, w.Since
	}
	if k := t.Kind; k != nil {
		v.Behavior, v.Creator, v.Details.Policy = k.Behavior, k.Creator, k.Policy
	}
	if p := t.Progress; p != nil {
		v.Progress = &task.Progress{Done: p.Done, Total: p.Total, Note: p.Note}
	}
	return v
}
