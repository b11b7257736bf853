package traffic

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/schedule"
)

const (
	// SchedulePrefix begins the names of schedules that sources ask about.
	SchedulePrefix = "times-"
	// schedules counts them: all sources know them.
	schedules = 6
	// handKeys counts the keys of their runs by hand.
	handKeys = 3
)

// Timing says what a request about schedules asks for.
type Timing struct {
	Name       string              // "" = all of them
	Definition schedule.Definition // of SetSchedule
	Seen       events.Ref          // the version that it concerns; 0 = any
	Back, For  time.Duration       // of Backfill: the ticks from so long ago on, of so long
}

// record tells what the request asks for in its record.
func (t *Timing) record(op *history.Operation) {
	op.Schedule = &history.ScheduleCall{}
	switch op.Verb {
	case history.SetSchedule:
		var err error
		if op.Schedule, err = Planned(&t.Definition, (&Work{ID_: t.Definition.Behavior}).Policy()); err != nil {
			panic(err) // the definitions of sources are in range
		}
	case history.Backfill:
		from := time.Now().Add(-t.Back)
		op.Schedule.From, op.Schedule.To = events.MillisOf(from), events.MillisOf(from.Add(t.For))
	}
	op.Schedule.Seen = t.Seen
	if t.Name != "" {
		op.Task = string(events.ScheduleRecord(t.Name))
	}
}

// verbsOfSchedules says how often each is drawn.
var verbsOfSchedules = []history.Verb{
	history.SetSchedule, history.SetSchedule, history.SetSchedule,
	history.RunSchedule, history.RunSchedule, history.RunSchedule, history.Backfill, history.Backfill, history.EndBackfill,
	history.PauseSchedule, history.ResumeSchedule, history.ResumeSchedule, history.DeleteSchedule,
	history.GetSchedule, history.GetSchedule, history.GetSchedule, history.GetSchedule, history.GetSchedule,
	history.ListSchedules,
}

func pick[T any](random *rand.Rand, all ...T) T { return all[random.IntN(len(all))] }

// schedule sets a schedule, and from then on asks about any, or changes it, or has it run.
func (s *Source) schedule() Request {
	t := &Timing{Name: fmt.Sprint(SchedulePrefix, s.random.IntN(schedules))}
	r := s.asks(Request{Verb: pick(s.random, verbsOfSchedules...), Schedule: t})
	if !s.scheduled {
		r.Verb, s.scheduled = history.SetSchedule, true
	}
	switch r.Verb {
	case history.SetSchedule:
		t.Definition = s.definition()
	case history.RunSchedule:
		r.Key = pick(s.random, "", fmt.Sprint("by hand ", s.random.IntN(handKeys)))
	case history.Backfill:
		t.Back = time.Second + time.Duration(s.random.IntN(9000))*time.Millisecond
		t.For = min(t.Back-time.Second, time.Duration(s.random.IntN(6000))*time.Millisecond)
	case history.PauseSchedule, history.EndBackfill:
		r.Reason = fmt.Sprint("for ", s.name, ", ", s.made)
	case history.ListSchedules:
		t.Name = ""
	}
	if !r.Verb.Asks() {
		t.Seen = pick[events.Ref](s.random, 0, 0, 0, 0, 0, 1)
	}
	return r
}

// definition draws one whose ticks come within seconds.
func (s *Source) definition() schedule.Definition {
	does := Params{Millis: 1 + s.random.IntN(60)}
	crons := []string{"@every 1s", "0/1 * * * * ?", "* * * * * ?", "0/2 * * * * ?", "1/3 * * * * ?"}
	switch k := s.random.IntN(10); {
	case s.Few:
		crons = crons[3:]
	case k < 2:
		does.Millis = 1500 + s.random.IntN(2500)
	case k < 5:
		does.Fails = 1 + s.random.IntN(maxAttempts)
	}
	params, err := json.Marshal(does)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	d := schedule.Definition{
		Cron:           pick(s.random, crons...),
		Behavior:       pick(s.random, once, once, again, regular),
		Params:         params,
		Overlap:        pick(s.random, schedule.Forbid, schedule.Forbid, schedule.Allow, schedule.Replace),
		Misfire:        pick(s.random, schedule.Once, schedule.Skip, schedule.All),
		Grace:          pick(s.random, 0, -1, 2*time.Second, 10*time.Second),
		Jitter:         pick(s.random, 0, 0, 700*time.Millisecond),
		Attempts:       pick(s.random, 0, 0, 1),
		Keep:           pick(s.random, 0, -1, 1, 3),
		PauseOnFailure: s.random.IntN(4) == 0,
	}
	if s.random.IntN(8) == 0 { // it runs when somebody asks
		d.Cron, d.Misfire, d.Jitter, d.PauseOnFailure = "", "", 0, false
	}
	return d
}
