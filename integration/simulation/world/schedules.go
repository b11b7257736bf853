package world

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/schedule"
)

// endings lists the ways to end of attempts, but for those after which a run would never end.
var endings = strings.ReplaceAll(allEndings, string(snoozes), "")

// timetables lists the kinds of schedules.
var timetables = []func(*scenario, *schedule.Definition){
	(*scenario).each, (*scenario).each, (*scenario).each, (*scenario).bounded,
	(*scenario).elsewhere, (*scenario).elsewhere, (*scenario).slowly, (*scenario).never,
}

// each is a schedule of every second, or of every few.
func (s *scenario) each(d *schedule.Definition) {
	d.Cron = pick(s.w.dice, "@every 1s", "0/1 * * * * ?", "* * * * * ?",
		"0/2 * * * * ?", "0/3 * * * * ?", "1/5 * * * * ?", "@every 4s")
}

// bounded is one that begins or ends soon.
func (s *scenario) bounded(d *schedule.Definition) {
	s.each(d)
	if s.w.dice.chance(0.5) {
		d.Start = time.Now().Add(s.w.dice.between(-5*time.Second, 5*time.Second))
	}
	if s.w.dice.chance(0.7) {
		d.End = time.Now().Add(s.w.dice.between(6*time.Second, 20*time.Second))
	}
}

// elsewhere is one by the clocks of a zone of which a node may have other data. A history begins at 23:00 UTC, and it
// has ticks then by the data of everybody.
func (s *scenario) elsewhere(d *schedule.Definition) {
	d.Timezone = disputed
	d.Cron = pick(s.w.dice, "0/3 * 23,0,1 * * ?", "0/7 * 23,0,1 * * ?", "5/20 * 0-2,23 ? * *", "0 0 0,1 * * ?")
}

// slowly is one that fires seldom, as long as the history lasts.
func (s *scenario) slowly(d *schedule.Definition) {
	d.Cron = pick(s.w.dice, "0/5 * * * * ?", "@every 7s", "0/20 * * * * ?", "@every 30s",
		"0 * * * * ?", "0 0 * * * ?", "@hourly")
}

// never is one without ticks, which runs when somebody asks.
func (s *scenario) never(d *schedule.Definition) {
	d.Cron, d.Misfire, d.Jitter, d.PauseOnFailure = "", "", 0, false
}

// uuids reports whether the schedule names its runs by UUIDs, which it does as long as it is there.
func (s *scenario) uuids() bool {
	return strings.HasSuffix(string(s.id), "0") || strings.HasSuffix(string(s.id), "5")
}

// define draws a definition.
func (s *scenario) define() schedule.Definition {
	d := schedule.Definition{
		Behavior: pick(s.w.dice, once, once, again, brief, merge, every),
		Overlap:  pick(s.w.dice, schedule.Forbid, schedule.Forbid, schedule.Allow, schedule.Replace),
		Misfire:  pick(s.w.dice, schedule.Once, schedule.Skip, schedule.All),
		Grace:    pick(s.w.dice, 0, -1, 2*time.Second, 10*time.Second),
		Jitter:   pick(s.w.dice, 0, 0, 700*time.Millisecond, 3*time.Second),
		Keep:     pick(s.w.dice, 0, -1, 1, 3),
		Attempts: pick(s.w.dice, 0, 0, 1),

		PauseOnFailure: s.w.dice.chance(0.3),
		UUIDs:          s.uuids(),
	}
	pick(s.w.dice, timetables...)(s, &d)
	does := job{Work: pick(s.w.dice, 50, 300, 1500, 2500)}
	switch s.w.dice.n(4) {
	case 0:
		does.Fails, does.Panics = s.w.dice.n(3), s.w.dice.chance(0.3)
	case 1:
		does.Ends = string(endings[s.w.dice.n(len(endings))])
	case 2:
		does.Runs = 2
	default:
		does.Work = pick(s.w.dice, does.Work, 6500) // what fails is tried again, and has less time
	}
	if d.Overlap == schedule.Allow { // few slots must do for those that come meanwhile
		does.Work = min(does.Work, 1500)
	}
	params, err := json.Marshal(does)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	d.Params = params
	return d
}

// scheduled is the life of a schedule, or of several under one name.
func (s *scenario) scheduled() {
	if s.w.pad != "" { // there the tasks of others may leave no room for runs
		s.simple()
		return
	}
	s.life()
	if s.w.dice.chance(0.3) {
		s.life()
	}
}

// life sets a schedule, has it fire and be steered, and ends it, or leaves it paused, or firing seldom.
func (s *scenario) life() {
	d := s.define()
	set := s.set(d, 0)
	for range 3 + s.w.dice.n(5) {
		s.pause(2500 * time.Millisecond)
		switch s.w.dice.n(12) {
		case 0:
			set = s.set(d, pick(s.w.dice, 0, set.Schedule.Version))
		case 1:
			d = s.define()
			set = s.set(d, pick(s.w.dice, 0, 0, set.Schedule.Version, set.Schedule.Version+1))
		case 2:
			s.steer(history.PauseSchedule)
			s.pause(3 * time.Second)
			s.steer(history.ResumeSchedule)
		case 3:
			s.steer(history.ResumeSchedule)
		case 4, 5:
			s.runs()
		case 6, 7:
			s.fills()
		case 8:
			s.steer(history.EndBackfill)
		case 9:
			s.w.caller().list(s.client(), pick(s.w.dice, "", once), 20)
			s.ask(history.ListSchedules, history.ScheduleCall{}, "")
		case 10:
			s.meddle()
		}
		s.ask(history.GetSchedule, history.ScheduleCall{}, "")
	}
	switch s.w.dice.n(10) {
	case 0, 1, 2:
		s.slowly(&d)
		d.Timezone, d.Start, d.End = "", time.Time{}, time.Time{}
		s.set(d, 0)
	case 3:
		s.steer(history.PauseSchedule)
	case 4:
		if d.End.IsZero() { // else its ticks end by themselves
			s.end()
		}
	default:
		s.end()
	}
}

// record is the id that the events of the scenario's schedule carry.
func (s *scenario) record() string { return string(events.ScheduleRecord(string(s.id))) }

// ask makes a call about the schedule.
func (s *scenario) ask(verb history.Verb, call history.ScheduleCall, request string) history.Operation {
	return s.call(verb, call, request, schedule.Definition{})
}

func (s *scenario) call(
	verb history.Verb, call history.ScheduleCall, request string, d schedule.Definition,
) history.Operation {
	op := history.Operation{Verb: verb, Request: request, Schedule: &call}
	if verb != history.ListSchedules {
		op.Task = s.record()
	}
	p := s.client()
	op, f := s.w.caller().schedules(p, op, d)
	if f != nil && op.Answer == history.OK && s.w.dice.chance(0.6) {
		s.await(p, f, "")
	} else if f != nil {
		f.Close()
	}
	return op
}

// schedules makes a call about schedules.
func (c *caller) schedules(
	p *process, op history.Operation, d schedule.Definition,
) (_ history.Operation, f *engine.Future) {
	op = c.do(p, op, c.timeout(), func(ctx context.Context, op *history.Operation) (err error) {
		f, err = traffic.Schedule(ctx, p.client, op, d, "for "+op.Task)
		return err
	})
	return op, f
}

// set defines the schedule.
func (s *scenario) set(d schedule.Definition, seen schedule.Version) history.Operation {
	call, err := traffic.Planned(&d, s.w.clients[0].behavior(d.Behavior).Policy())
	if err != nil {
		panic(err) // every definition of these is sound
	}
	call.Seen = seen
	return s.call(history.SetSchedule, *call, "", d)
}

// steer makes a call that has no argument but, now and then, a version that there never was.
func (s *scenario) steer(verb history.Verb) history.Operation {
	return s.ask(verb, history.ScheduleCall{Seen: s.seen()}, "")
}

// seen draws the version that a caller has seen: any, or, now and then, one that there never was.
func (s *scenario) seen() events.Ref { return pick[events.Ref](s.w.dice, 0, 0, 0, 0, 1) }

// runs has several callers ask for a run at once, some under one key.
func (s *scenario) runs() {
	key := fmt.Sprint("key ", s.w.dice.n(3))
	var all sync.WaitGroup
	for range 1 + s.w.dice.n(3) {
		request := pick(s.w.dice, "", key, key)
		call := history.ScheduleCall{Seen: s.seen(), Priority: pick[int64](s.w.dice, 0, 0, 300)}
		all.Go(func() { s.ask(history.RunSchedule, call, request) })
	}
	all.Wait()
}

// fills backfills some seconds of the past.
func (s *scenario) fills() {
	to := time.Now().Add(-s.w.dice.between(time.Second, 5*time.Second))
	from := to.Add(-s.w.dice.between(time.Second, 9*time.Second))
	s.ask(history.Backfill, history.ScheduleCall{
		From: events.MillisOf(from),
		To:   events.MillisOf(to),
		Seen: s.seen(),
	}, "")
}

// meddle does to a run what may be done to any task.
func (s *scenario) meddle() {
	op := s.ask(history.RunSchedule, history.ScheduleCall{}, "")
	run := op.Schedule.Run
	if op.Answer != history.OK || run == "" {
		return
	}
	s.get(run)
	s.pause(time.Second)
	s.operate(pick(s.w.dice, history.Cancel, history.Retry, history.RunNow, history.Delete, history.Suspend), run)
	s.pause(time.Second)
	s.operate(pick(s.w.dice, history.Retry, history.Resume), run)
	s.operate(history.Resume, run)
	s.get(run)
}

// end deletes the schedule, again until it is told that there is none.
func (s *scenario) end() {
	for range 6 {
		op := s.ask(history.DeleteSchedule, history.ScheduleCall{}, "")
		if op.Answer == history.OK || op.Answer == history.Absent {
			return
		}
		s.pause(time.Second)
	}
}

// endSchedules deletes the schedules that would go on for ever.
func (w *world) endSchedules(ctx context.Context) {
	all, _, err := w.clients[0].client.Schedules().List(ctx, schedule.Filter{}, "", 100)
	if err != nil {
		return // it is tried again
	}
	for i := range all {
		if s := &all[i]; s.Next != 0 && s.Paused == nil || s.Fill != nil {
			(&scenario{w, events.TaskID(s.Name)}).ask(history.DeleteSchedule, history.ScheduleCall{}, "")
		}
	}
}
