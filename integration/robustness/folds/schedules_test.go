package folds_test

import (
	"slices"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/folds"
)

const tick events.Millis = 3_600_000

// ofSchedule returns the history of one that is set, has two runs, is paused, and backfills one tick. Each decision and its run are an entry.
func ofSchedule() []events.Event {
	run := func(id events.TaskID) events.Event {
		return events.Event{Task: id, Body: &events.Created{Ties: events.Ties{Schedule: "s"}}}
	}
	ticked := func(b events.Ticked) events.Event { return events.Event{Body: &b} }
	all := []events.Event{
		{Body: &events.ScheduleSet{Next: tick}},
		ticked(events.Ticked{Decision: events.TickCreated, From: tick, To: tick, Run: "s/tick:3600000", Next: 2 * tick}), run("s/tick:3600000"),
		ticked(events.Ticked{Decision: events.TickMissed, From: 2 * tick, To: 4 * tick, Next: 5 * tick}),
		{Body: &events.SchedulePaused{}}, {Body: &events.ScheduleResumed{}},
		{Body: &events.BackfillSet{From: 1, To: 9, Ticks: 1}},
		ticked(events.Ticked{Decision: events.TickFilled, From: 1, To: 1, Run: "s/fill:1"}), run("s/fill:1"),
		{Body: &events.BackfillEnded{}},
		{Body: &events.ScheduleEnded{}},
		{Body: &events.ScheduleSet{Next: 9 * tick}},
	}
	return all
}

// judge gives the events their places and folds them: a task stands in the entry of the event before it.
func judge(all []events.Event) (problems []string) {
	var s folds.Schedules
	entry, index, seq, prev := uint64(0), 0, uint64(0), events.Ref(0)
	for i := range all {
		ev := &all[i]
		created, runs := ev.Body.(*events.Created)
		if index++; !runs {
			entry, index = entry+1, 0
		}
		ev.Position.Ref = events.RefOf(entry, index)
		if runs {
			if problem := s.Created(ev, created); problem != "" {
				problems = append(problems, problem)
			}
			continue
		}
		seq++
		ev.Task, ev.Seq, ev.Prev = events.ScheduleRecord("s"), seq, prev
		prev = ev.Position.Ref
		if _, ends := ev.Body.(*events.ScheduleEnded); ends {
			seq, prev = 0, 0
		}
		if problem := s.Apply(ev); problem != "" {
			problems = append(problems, problem)
		}
	}
	return problems
}

func TestSchedules_TakesALegalHistory(t *testing.T) {
	if problems := judge(ofSchedule()); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestSchedules_FindsWhatIsForbidden(t *testing.T) {
	ticked := func(all []events.Event, i int) *events.Ticked { return all[i].Body.(*events.Ticked) }
	for name, plant := range map[string]func(all []events.Event) []events.Event{
		"a tick is decided twice":           func(all []events.Event) []events.Event { ticked(all, 3).From = tick; return all },
		"a tick is left out":                func(all []events.Event) []events.Event { ticked(all, 3).From = 3 * tick; return all },
		"the next tick is decided":          func(all []events.Event) []events.Event { ticked(all, 3).Next = 2 * tick; return all },
		"a run is left out":                 func(all []events.Event) []events.Event { return slices.Delete(all, 2, 3) },
		"another run stands there":          func(all []events.Event) []events.Event { all[2].Task = "s/tick:7200000"; return all },
		"a run comes without its tick":      func(all []events.Event) []events.Event { return slices.Delete(all, 1, 2) },
		"a run is tied to another schedule": func(all []events.Event) []events.Event { all[2].Body = &events.Created{}; return all },
		"it is paused twice":                func(all []events.Event) []events.Event { return slices.Insert(all, 4, all[4]) },
		"a backfill goes on beyond its end": func(all []events.Event) []events.Event { ticked(all, 7).Next = 10; return all },
		"what is decided comes again": func(all []events.Event) []events.Event {
			return append(all[:4], events.Event{Body: &events.ScheduleSet{Next: tick}})
		},
	} {
		if problems := judge(plant(ofSchedule())); len(problems) == 0 {
			t.Errorf("%s, and nothing is told", name)
		}
	}
}
