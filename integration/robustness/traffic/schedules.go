package traffic

import (
	"context"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/schedule"
	"taskledger/task"
)

// listedAtOnce is the number of schedules of a page.
const listedAtOnce = 20

// Planned records the definition of a schedule as an owner has it, by the policy of its behavior.
func Planned(d *schedule.Definition, p task.Policy) (*history.ScheduleCall, error) {
	plan, err := d.Plan(p)
	if err != nil {
		return nil, err
	}
	return &history.ScheduleCall{Plan: &plan, Params: string(d.Params)}, nil
}

// Schedule makes a call about schedules, of which op says all but the definition of a SetSchedule and the reason, and
// fills in what it is told. RunSchedule returns the future of the run.
func Schedule(
	ctx context.Context, c *engine.Client, op *history.Operation, d schedule.Definition, reason string,
) (f *engine.Future, err error) {
	all, call, name := c.Schedules(), op.Schedule, events.TaskID(op.Task).Affinity()
	switch op.Verb {
	case history.SetSchedule:
		if call.Seen != 0 {
			op.Reason = "it was seen"
		}
		how := schedule.Setting{Seen: call.Seen, Reason: op.Reason}
		call.Version, call.Changed, err = all.SetWith(ctx, name, d, how)
	case history.PauseSchedule:
		err = all.Pause(ctx, name, reason, call.Seen)
	case history.ResumeSchedule:
		err = all.Resume(ctx, name, call.Seen)
	case history.DeleteSchedule:
		err = all.Delete(ctx, name, call.Seen)
	case history.RunSchedule:
		f, err = all.RunWith(ctx, name, schedule.ByHand{Key: op.Request, Priority: call.Priority}, call.Seen)
		call.Run, op.Joined = string(f.ID()), f.Joined()
	case history.Backfill:
		call.Ticks, err = all.Backfill(ctx, name, call.From.Time(), call.To.Time(), call.Seen)
	case history.EndBackfill:
		err = all.EndBackfill(ctx, name, reason, call.Seen)
	case history.GetSchedule:
		var is schedule.Schedule
		if is, err = all.GetLinear(ctx, name); err == nil {
			call.Shown = []history.ShownSchedule{shownSchedule(&is)}
		}
	case history.ListSchedules:
		err = listSchedules(ctx, all, call)
	default:
		panic("no call about schedules: " + op.Verb)
	}
	return f, err
}

// listSchedules reads every page.
func listSchedules(ctx context.Context, all engine.Schedules, call *history.ScheduleCall) error {
	for after := ""; ; {
		page, more, err := all.List(ctx, schedule.Filter{}, after, listedAtOnce)
		if err != nil {
			return err
		}
		for i := range page {
			call.Shown = append(call.Shown, shownSchedule(&page[i]))
			after = page[i].Name
		}
		if !more {
			return nil
		}
	}
}

// ScheduleNames returns the names of all schedules.
func ScheduleNames(ctx context.Context, c *engine.Client) (names []string, err error) {
	var call history.ScheduleCall
	if err = listSchedules(ctx, c.Schedules(), &call); err != nil {
		return nil, err
	}
	for i := range call.Shown {
		names = append(names, call.Shown[i].Name)
	}
	return names, nil
}

func shownSchedule(s *schedule.Schedule) history.ShownSchedule {
	shown := history.ShownSchedule{
		Name:    s.Name,
		Version: s.Version,
		Next:    s.Next,
		Last:    s.Last,
		Active:  s.Active,
		Kept:    s.Kept,
		Paused:  s.Paused != nil,
		Left:    -1,
		Why:     s.Why,
	}
	if s.Fill != nil {
		shown.Left = s.Fill.Left
	}
	return shown
}
