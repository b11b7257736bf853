package schedules

import (
	"bytes"
	"cmp"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
	"taskledger/projection/schedules"
	"taskledger/schedule"
)

// setAnswer answers a Set.
type setAnswer struct {
	Version uint64
	Changed bool
}

// notThere refuses a command of a schedule that does not exist.
func notThere() command.Answer { return command.Answer{Code: command.AnswerNotFound} }

// changed refuses a command whose sender has seen another version.
func changed() command.Answer { return command.Answer{Code: command.AnswerChanged} }

// unchanged reports whether a schedule, nil for none, is as the sender of a command has seen it.
func unchanged(of *schedules.Schedule, seen uint64) bool {
	switch schedule.Version(seen) {
	case 0:
		return true
	case schedule.Absent:
		return of == nil
	}
	return of != nil && uint64(of.Set) == seen
}

// emit records an event of a schedule, nil for one that is not there.
func emit(d *command.Decider, name string, of *schedules.Schedule, body events.Body) {
	seq, prev := uint64(1), events.Ref(0)
	if of != nil {
		seq, prev = of.Seq+1, of.Last
	}
	d.EmitFollowing(events.ScheduleRecord(name), seq, prev, "", body)
}

// Decide makes the schedule, or changes it. An equal definition changes nothing.
func (c *Set) Decide(d *command.Decider) command.Answer {
	all := schedules.Of(d.State)
	of := all.Schedule(c.Name)
	plan, err := c.plan()
	if err != nil {
		return command.Refused(command.AnswerInvalid, "%v", invalid("plan", err.Error()))
	}
	if of != nil && plan.Names == events.NamesByOrigin {
		plan.Names = of.Plan.Names
	}
	params := events.Payload(c.Params)
	next, offset := events.Millis(c.Next), c.Offset
	if sameTicks(of, &plan) && of.Next != 0 { // the next tick stays, also when it is due, whatever the sender has found
		next, offset = of.Next, of.NextOffset
	}
	switch {
	case !unchanged(of, c.Seen):
		return changed()
	case c.Code != "" && all.Knows(c.Name, c.Code):
		return answerSet(of, false)
	case of != nil && of.Plan == plan && bytes.Equal(of.Params, params) && c.Code == "":
		return answerSet(of, false)
	case plan.Cron == "" && next != 0:
		return command.Refused(command.AnswerInvalid, "%v", invalid("next", "want none without cron"))
	case next == 0 && plan.End != 0 && plan.End < d.Now:
		return command.Refused(command.AnswerInvalid, "%v", invalid("end", "it is over: no tick comes any more"))
	case next == 0 && plan.Cron != "":
		return command.Refused(command.AnswerInvalid, "%v",
			invalid("cron", "it does not fire between now and end, nor within 110 years"))
	case of == nil && all.Len() >= schedules.MaxSchedules:
		return command.Overload("shard holds %d schedules", schedules.MaxSchedules)
	case of != nil && next != 0 && next <= of.Decided: // its sender did not know of that tick
		return changed()
	}
	if refusal, refused := d.Grows(c.Size()); refused {
		return refusal
	}
	set := events.ScheduleSet{
		Plan:   plan,
		Params: params,
		Next:   next,
		Offset: offset,
		Code:   c.Code,
	}
	emit(d, c.Name, of, set.Recorded(c.Reason))
	return answerSet(all.Schedule(c.Name), true)
}

// sameTicks reports whether a plan has the ticks that a schedule has.
func sameTicks(of *schedules.Schedule, p *events.SchedulePlan) bool {
	return of != nil && of.Plan.Cron == p.Cron && of.Plan.Zone == p.Zone && of.Plan.Start == p.Start &&
		of.Plan.End == p.End
}

func answerSet(of *schedules.Schedule, changed bool) command.Answer {
	msg := setAnswer{Changed: changed}
	if of != nil {
		msg.Version = uint64(of.Set)
	}
	return command.Answer{Data: message.Encode(msg)}
}

// Decide does what the verb says. What is so already changes nothing.
func (c *Steer) Decide(d *command.Decider) command.Answer {
	of := schedules.Of(d.State).Schedule(c.Name)
	switch {
	case of == nil:
		return notThere()
	case !unchanged(of, c.Seen):
		return changed()
	}
	if refusal, refused := d.Grows(0); refused {
		return refusal
	}
	switch Verb(c.Verb) {
	case Pause:
		if of.Paused == nil {
			emit(d, c.Name, of, &events.SchedulePaused{Reason: c.Reason})
		}
	case Resume:
		if of.Paused != nil {
			emit(d, c.Name, of, &events.ScheduleResumed{})
		}
	case Delete:
		emit(d, c.Name, of, &events.ScheduleEnded{})
		return command.Answer{}
	case EndBackfill:
		if of.Fill == nil {
			return command.Refused(command.AnswerState, "no backfill is under way")
		}
		emit(d, c.Name, of, &events.BackfillEnded{Reason: c.Reason})
	}
	return answerSet(schedules.Of(d.State).Schedule(c.Name), true)
}

// Decide makes a run, unless one is there that the caller shares: one of the same key, or, where runs must not overlap,
// one that has not ended.
func (c *Run) Decide(d *command.Decider) command.Answer {
	all := schedules.Of(d.State)
	of := all.Schedule(c.Name)
	if of == nil {
		return notThere()
	}
	id := of.ByHand(events.TaskID(c.ID))
	if t := d.State.Task(id); t != nil && t.RunOf() == 0 {
		return command.Refused(command.AnswerState, "there is a task %s, which is no run of the schedule", id)
	} else if t != nil {
		a := command.Joined(t)
		a.Repeated = true // its id is made of the request
		return shared(t.ID, a)
	}
	request := c.request()
	if t := sharedBy(d, of, request); t != nil {
		return shared(t.ID, command.Joined(t))
	}
	if !unchanged(of, c.Seen) {
		return changed()
	}
	if of.Plan.Overlap != events.OverlapAllow {
		if active := all.Active(of); active != "" {
			return shared(active, d.Join(d.State.Task(active), request))
		}
	}
	if of.Active() >= schedules.MaxActive {
		return command.Refused(command.AnswerState, "%d runs have not ended, which is the limit", schedules.MaxActive)
	}
	body := of.Run(d.Now, events.RunByHand)
	body.Priority = cmp.Or(c.Priority, body.Priority)
	if refusal, refused := d.MayCreate(len(body.Params)); refused {
		return refusal
	}
	t := d.Create(id, body)
	if t == nil {
		return command.Answer{}
	}
	return shared(id, command.Answer{Life: t.Created, Run: 1})
}

// sharedBy returns the run of the schedule that a request with a key has shared, as far as it is remembered.
func sharedBy(d *command.Decider, of *schedules.Schedule, request string) *projection.Task {
	if request == "" {
		return nil
	}
	for id := range schedules.Of(d.State).Runs(of) {
		if t := d.State.Task(id); t.Requests.Of(request) != nil {
			return t
		}
	}
	return nil
}

// shared is the answer about a run.
func shared(id events.TaskID, a command.Answer) command.Answer {
	a.Data = []byte(id)
	return a
}

// Decide begins a backfill of ticks of the past.
func (c *Backfill) Decide(d *command.Decider) command.Answer {
	of := schedules.Of(d.State).Schedule(c.Name)
	switch {
	case of == nil:
		return notThere()
	case !unchanged(of, c.Seen):
		return changed()
	case of.Plan.Cron == "":
		return command.Refused(command.AnswerState, "a schedule without cron has no ticks")
	case of.Fill != nil:
		return command.Refused(command.AnswerState, "a backfill is under way")
	case events.Millis(c.To) >= d.Now:
		return command.Refused(command.AnswerInvalid, "%v", invalid("to", "want a time of the past"))
	}
	if refusal, refused := d.Grows(commandBytes); refused {
		return refusal
	}
	emit(d, c.Name, of, &events.BackfillSet{
		From:  events.Millis(c.From),
		To:    events.Millis(c.To),
		Ticks: uint32(c.Ticks),
	})
	return answerSet(of, true)
}
