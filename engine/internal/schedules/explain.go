package schedules

import (
	"cmp"
	"fmt"
	"time"

	"taskledger/engine/internal/explanation"
	"taskledger/events"
	"taskledger/projection/schedules"
	"taskledger/task"
)

// explain says why a schedule, by the id of its record, has no run now.
func (o *atOwner) explain(id events.TaskID) (e explanation.Explanation, is bool) {
	name, err := events.ScheduleOf(id)
	if err != nil {
		return e, false
	}
	s := o.all.Schedule(name)
	if s == nil {
		return e, false
	}
	e = o.whyNow(s)
	if f := s.Fill; f != nil {
		e.Text += fmt.Sprintf("; %d of the %d ticks of a backfill are left", f.Left, f.Ticks)
	}
	return e, true
}

func (o *atOwner) whyNow(s *schedules.Schedule) explanation.Explanation {
	due := s.Next + s.Delay()
	switch is, unknown := o.unknown[s.Name]; {
	case s.Paused != nil:
		return explanation.Explanation{Why: task.WhyPaused, Since: s.Paused.Since, Text: whyPaused(s.Paused)}
	case s.Plan.Cron == "" && s.Active() > 0 && s.Plan.Overlap != events.OverlapAllow:
		text := fmt.Sprintf("its run %s has not ended: who asks for a run shares it", o.all.Active(s))
		return explanation.Explanation{Why: task.WhyRunning, Text: text}
	case s.Plan.Cron == "":
		text := "it never runs by itself, but when somebody asks: it has no cron expression"
		return explanation.Explanation{Why: task.WhyByHand, Text: text}
	case s.Next == 0:
		return explanation.Explanation{Why: task.WhyFinished, Text: "it has no further tick"}
	case unknown:
		return explanation.Explanation{Why: task.WhyNoZone, Text: is.why}
	case o.catchesUp(s) != "":
		return explanation.Explanation{Why: task.WhyRunning, Since: due, Text: o.catchesUp(s)}
	case s.Active() > 0 && s.Plan.Overlap == events.OverlapForbid:
		text := fmt.Sprintf("its run %s has not ended: ticks that fall due before are skipped", o.all.Active(s))
		return explanation.Explanation{Why: task.WhyRunning, Text: text}
	case s.Active() > 0 && s.Plan.Overlap == events.OverlapReplace:
		text := fmt.Sprintf("its run %s has not ended: the next tick cancels it", o.all.Active(s))
		return explanation.Explanation{Why: task.WhyRunning, Text: text + ", and is at " + shown(due)}
	case o.all.Waiting(s.Name):
		why := cmp.Or(o.barred, "it is decided next")
		return explanation.Explanation{Why: task.WhyWaiting, Since: due, Text: "a tick is due: " + why}
	}
	return explanation.Explanation{Why: task.WhyScheduled, Text: "its next tick is at " + shown(due)}
}

// catchesUp says that the next tick waits for a run of one before it; "" = it does not.
func (o *atOwner) catchesUp(s *schedules.Schedule) string {
	if s.Active() == 0 || s.Next == 0 || s.Next > s.CatchUp {
		return ""
	}
	const text = "ticks up to %s, which nobody decided in time, have their runs one after the other, " +
		"and run %s has not ended"
	return fmt.Sprintf(text, shown(s.CatchUp), o.all.Active(s))
}

// whyPaused says who or what paused a schedule.
func whyPaused(p *schedules.Pause) string {
	if p.Failed != "" {
		return fmt.Sprintf("it is paused, since the run %s has failed for good", p.Failed)
	}
	text := "it is paused"
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Reason != "" {
		text += ": " + explanation.Line(p.Reason)
	}
	return text
}

func shown(at events.Millis) string { return at.Time().UTC().Format(time.RFC3339) }
