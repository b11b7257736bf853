package check_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/internal/runid"
)

const second events.Millis = 1000

// entry is one of a shard: what is recorded of the schedule "s", and of its runs, at a time.
type entry struct {
	at   events.Millis // seconds
	said []events.Event
}

// definition defines a schedule which fires each second.
func definition(next events.Millis) *events.ScheduleSet {
	return &events.ScheduleSet{
		Plan: events.SchedulePlan{Cron: "0/1 * * * * ?", Zone: "UTC", Behavior: "work", Keep: 1, PauseOnFailure: true},
		Next: next * second,
	}
}

func of(body events.Body) events.Event { return events.Event{Body: body} }

// ticked decides ticks, which are in seconds; the next one follows them.
func ticked(d events.TickDecision, c events.TickCause, from, to events.Millis) *events.Ticked {
	b := &events.Ticked{
		Decision: d,
		Cause:    c,
		From:     from * second,
		To:       to * second,
		Next:     (to + 1) * second,
	}
	if d == events.TickCreated || d == events.TickFilled {
		b.Run = run(d, from)
	}
	return b
}

func run(d events.TickDecision, tick events.Millis) events.TaskID {
	prefix := events.TickPrefix
	if d == events.TickFilled {
		prefix = events.FillPrefix
	}
	return events.TaskID(fmt.Sprint("s/", prefix, tick*second))
}

// created decides a tick, and creates its run.
func created(tick events.Millis) []events.Event {
	return []events.Event{
		of(ticked(events.TickCreated, events.TickNoCause, tick, tick)),
		made(run(events.TickCreated, tick), tick),
	}
}

func made(id events.TaskID, at events.Millis) events.Event {
	return events.Event{Task: id, Body: &events.Created{
		Behavior:  "work",
		NotBefore: at * second,
		Ties:      events.Ties{Schedule: "s"},
	}}
}

func ended(id events.TaskID) events.Event {
	return events.Event{Task: id, Body: &events.Succeeded{Run: 1}}
}

func failed(id events.TaskID) events.Event {
	return events.Event{Task: id, Body: &events.Failed{Error: events.Error{Code: "no"}, Run: 1}}
}

// whole has a schedule that goes through all that may become of its ticks.
func whole() []entry {
	filled := ticked(events.TickFilled, events.TickNoCause, 1, 1)
	filled.Next = 0
	correct := &events.Ticked{Decision: events.TickCorrected, Next: 3000 * second}
	return []entry{
		{0, []events.Event{of(definition(1))}},
		{1, created(1)},
		{5, []events.Event{ended("s/tick:1000"), of(ticked(events.TickSkipped, events.TickOverlap, 2, 5))}},
		{6, created(6)},
		{7, []events.Event{failed("s/tick:6000"), of(&events.SchedulePaused{Failed: "s/tick:6000"})}},
		{8, []events.Event{made("s/run:1", 8)}},
		{9, []events.Event{ended("s/run:1"), of(&events.ScheduleResumed{})}},
		{11, []events.Event{
			of(ticked(events.TickSkipped, events.TickOverlap, 7, 9)),
			of(ticked(events.TickMissed, events.TickOld, 10, 10)),
		}},
		{11, created(11)},
		{11, []events.Event{
			ended("s/tick:11000"),
			of(&events.BackfillSet{From: 1 * second, To: 2 * second, Ticks: 1}),
		}},
		{11, []events.Event{of(filled), made("s/fill:1000", 11)}},
		{11, []events.Event{ended("s/fill:1000"), of(&events.BackfillEnded{})}},
		{11, []events.Event{of(correct)}},
		{12, []events.Event{of(&events.ScheduleEnded{})}},
		{12, []events.Event{of(definition(1))}},
		{13, []events.Event{
			of(ticked(events.TickMissed, events.TickOld, 1, 11)),
			of(ticked(events.TickSkipped, events.TickTaken, 12, 12)),
		}},
	}
}

// foldSchedules gives the events their places and folds them.
func foldSchedules(all []entry) (problems []string) {
	var s check.ScheduleFold
	seq, prev := uint64(0), events.Ref(0)
	there := map[events.TaskID]events.Ref{"s/tick:12000": 1, runid.OfTick("s", 12*second): 1}
	origins := map[events.TaskID]events.RunOrigin{}
	for n, e := range all {
		for i := range e.said {
			ev := e.said[i]
			ev.Position.Ref, ev.At = events.RefOf(uint64(n+1), i), e.at*second
			if ev.Kind().Record() == events.OfTask {
				problems = append(problems, s.Judge(&ev))
				b, first := ev.Body.(*events.Created)
				if first {
					there[ev.Task], origins[ev.Task] = ev.Position.Ref, cmp.Or(b.Ties.Run, events.OriginOf(ev.Task))
				}
				s.Task(&ev, check.TaskState{
					Life:  there[ev.Task],
					Final: !first,
					Run:   origins[ev.Task],
				})
				continue
			}
			seq++
			ev.Task, ev.Seq, ev.Prev = events.ScheduleRecord("s"), seq, prev
			prev = ev.Position.Ref
			if ev.Kind() == events.KindScheduleEnded {
				seq, prev = 0, 0
			}
			problem, _ := s.Apply(&ev, func(id events.TaskID) bool { return there[id] != 0 })
			problems = append(problems, problem)
		}
	}
	return slices.DeleteFunc(problems, func(text string) bool { return text == "" })
}

// namedByUUID gives the runs of a history UUIDs for names.
func namedByUUID(all []entry) []entry {
	rename := func(id events.TaskID) events.TaskID {
		_, of, _ := strings.Cut(string(id), ":")
		at, _ := strconv.ParseInt(of, 10, 64)
		switch events.OriginOf(id) {
		case events.RunOfTick:
			return runid.OfTick("s", events.Millis(at))
		case events.RunByHand:
			return runid.OfHand("s", of)
		case events.RunOfFill:
			return runid.OfFill("s", events.Millis(at), 0)
		}
		return id
	}
	for _, e := range all {
		for i := range e.said {
			ev := &e.said[i]
			switch b := ev.Body.(type) {
			case *events.ScheduleSet:
				b.Plan.Names = events.NamesByUUID
				ev.Body = b.Recorded("")
			case *events.Ticked:
				b.Run = rename(b.Run)
			case *events.SchedulePaused:
				b.Failed = rename(b.Failed)
			case *events.Created:
				b.Ties.Run = events.OriginOf(ev.Task)
			}
			ev.Task = rename(ev.Task)
		}
	}
	return all
}

func TestSchedules_TakesALegalHistory(t *testing.T) {
	if problems := foldSchedules(whole()); len(problems) > 0 {
		t.Error(problems)
	}
	if problems := foldSchedules(namedByUUID(whole())); len(problems) > 0 {
		t.Errorf("named by UUIDs: %v", problems)
	}
	reasoned := whole()
	for _, e := range reasoned {
		for i := range e.said {
			if b := events.DefinitionIn(e.said[i].Body); b != nil {
				e.said[i].Body = b.Recorded("why")
			}
		}
	}
	if problems := foldSchedules(reasoned); len(problems) > 0 {
		t.Errorf("with reasons: %v", problems)
	}
}

func TestSchedules_HoldsRunsToTheRuleOfNames(t *testing.T) {
	ties := func(all []entry, n int) *events.Ties {
		return &all[n].said[len(all[n].said)-1].Body.(*events.Created).Ties
	}
	for name, plant := range map[string]func(all []entry){
		"a run of a tick tells to be by hand":      func(all []entry) { ties(all, 1).Run = events.RunByHand },
		"a run of a backfill tells to be a tick's": func(all []entry) { ties(all, 10).Run = events.RunOfTick },
		"a run by hand tells to be a tick's":       func(all []entry) { ties(all, 5).Run = events.RunOfTick },
		"a run does not tell what made it":         func(all []entry) { ties(all, 1).Run = 0 },
		"a run has the id of another tick": func(all []entry) {
			all[1].said[0].Body.(*events.Ticked).Run = runid.OfTick("s", 2*second)
			all[1].said[1].Task = runid.OfTick("s", 2*second)
		},
		"a tick comes without an expression": func(all []entry) {
			all[0].said[0].Body.(*events.ScheduleDefined).Plan.Cron = ""
		},
	} {
		all := namedByUUID(whole())
		if plant(all); len(foldSchedules(all)) == 0 {
			t.Errorf("%s, and nothing is told", name)
		}
	}
}

func TestSchedules_FindsWhatIsForbidden(t *testing.T) {
	tick := func(e *entry, i int) *events.Ticked { return e.said[i].Body.(*events.Ticked) }
	plan := func(all []entry) *events.SchedulePlan { return &all[0].said[0].Body.(*events.ScheduleSet).Plan }
	body := func(all []entry) *events.Created { return all[1].said[1].Body.(*events.Created) }
	for name, plant := range map[string]func(all []entry){
		"a tick is left out":               func(all []entry) { tick(&all[2], 1).From = 3 * second },
		"ticks are passed over":            func(all []entry) { tick(&all[2], 1).Next = 7 * second },
		"a stretch ends between two ticks": func(all []entry) { tick(&all[2], 1).To = 4500 },
		"a tick is decided before its time": func(all []entry) {
			all[3].at = 5
		},
		"a run is left out":                        func(all []entry) { all[1].said = all[1].said[:1] },
		"another run stands there":                 func(all []entry) { all[1].said[1].Task = "s/tick:2000" },
		"a run comes without its tick":             func(all []entry) { all[1].said = all[1].said[1:] },
		"a run is tied to another schedule":        func(all []entry) { body(all).Ties.Schedule = "t" },
		"a run is of another behavior":             func(all []entry) { body(all).Behavior = "sleep" },
		"a run has other parameters":               func(all []entry) { body(all).Params = events.JSON([]byte("1")) },
		"a run has a run beside it":                func(all []entry) { all[2] = entry{2, created(2)} },
		"a tick is skipped for no run":             func(all []entry) { all[3].said = skips(6) },
		"more is skipped than a run took":          func(all []entry) { all[2] = entry{4, all[2].said} },
		"a tick is skipped where runs may overlap": func(all []entry) { plan(all).Overlap = events.OverlapAllow },
		"a tick is skipped for no task of its id": func(all []entry) {
			tick(&all[15], 1).From, tick(&all[15], 1).To = 13*second, 13*second
		},
		"a tick that came while a run went on has one": func(all []entry) { all[2].said = append(all[2].said[:1], created(2)...) },
		"a tick that came in a pause is missed as old": func(all []entry) {
			all[7].said = []events.Event{of(ticked(events.TickMissed, events.TickOld, 7, 9))}
			plan(all).Overlap = events.OverlapAllow
			all[2].said, all[3].at = all[2].said[:1], 5
		},
		"a tick has its run too late": func(all []entry) { plan(all).Misfire, all[1].at = events.MisfireSkip, 3 },
		"a tick has its run, and is not the newest": func(all []entry) {
			all[1].at = 20
		},
		"a tick is missed as late and is not": func(all []entry) {
			plan(all).Misfire, plan(all).Grace = events.MisfireSkip, 60*second
			tick(&all[7], 1).Cause = events.TickLate
		},
		"a tick is missed and none is newer":      func(all []entry) { all[7].at = 10 },
		"a tick of the newest hundred is missed":  func(all []entry) { plan(all).Misfire = events.MisfireAll },
		"a tick is missed for no pause":           func(all []entry) { tick(&all[7], 1).Cause = events.TickPaused },
		"a failure pauses nothing":                func(all []entry) { all[4].said = all[4].said[:1] },
		"a success pauses":                        func(all []entry) { all[4].said[0] = ended("s/tick:6000") },
		"a failure pauses against the definition": func(all []entry) { plan(all).PauseOnFailure = false },
		"a tick of a backfill has a run beside":   func(all []entry) { all[9].said = all[9].said[1:] },
		"a backfill goes on beyond its end":       func(all []entry) { tick(&all[10], 0).Next = 3 * second },
		"a correction goes back":                  func(all []entry) { tick(&all[12], 0).Next = 4 * second },
		"a correction changes nothing":            func(all []entry) { tick(&all[12], 0).Next = 12 * second },
		"a correction passes over what is due":    func(all []entry) { all[12].at = 12 },
		"a run repeats by itself":                 func(all []entry) { all[2].said[0].Body.(*events.Succeeded).Next = 9 },
		"ticks come after the end":                func(all []entry) { plan(all).End = 5 * second },
		"a time of day comes again": func(all []entry) {
			plan(all).Cron, plan(all).Zone = "0/1 0,1 0 * * ?", "Europe/Berlin"
			tick(&all[2], 1).NextOffset = -3600
		},
	} {
		all := whole()
		if plant(all); len(foldSchedules(all)) == 0 {
			t.Errorf("%s, and nothing is told", name)
		}
		all = whole()
		if plant(all); len(foldSchedules(namedByUUID(all))) == 0 {
			t.Errorf("%s, with UUIDs for names, and nothing is told", name)
		}
	}
}

func TestSchedules_WithoutTicksHaveNoBackfill(t *testing.T) {
	idle := definition(0)
	idle.Plan.Cron, idle.Plan.PauseOnFailure = "", false
	all := []entry{
		{0, []events.Event{of(idle.Recorded(""))}},
		{1, []events.Event{made("s/run:1", 1)}},
		{2, []events.Event{ended("s/run:1")}},
	}
	if problems := foldSchedules(all); len(problems) > 0 {
		t.Error(problems)
	}
	fill := of(&events.BackfillSet{From: second, To: second, Ticks: 1})
	if problems := foldSchedules(append(all, entry{3, []events.Event{fill}})); len(problems) == 0 {
		t.Error("a backfill, and nothing is told")
	}
}

func TestSchedules_FindsWhatStandsWhereItMustNot(t *testing.T) {
	of := func(at events.Millis, bodies ...events.Body) entry {
		e := entry{at: at}
		for _, body := range bodies {
			e.said = append(e.said, of(body))
		}
		return e
	}
	all := whole()
	for name, row := range map[string]struct {
		before int
		is     entry
	}{
		"a tick is decided twice":                {4, all[3]},
		"a tick is decided again behind its run": {2, entry{2, all[1].said[:1]}},
		"a run by hand of no schedule":           {0, all[5]},
		"a run by hand has a run beside it":      {2, all[5]},
		"it is set to what it was":               {1, of(0, definition(1))},
		"it is paused twice":                     {5, of(7, &events.SchedulePaused{})},
		"a tick has a run while it is paused":    {5, entry{7, created(7)}},
		"a backfill is ended by nobody":          {10, all[11]},
		"what was decided comes again":           {5, of(7, changed(3))},
		"what is due is passed over by a change": {1, of(1, changed(2))},
		"a second correction within the hour":    {13, of(12, &events.Ticked{Decision: events.TickCorrected, Next: 13 * second})},
	} {
		if problems := foldSchedules(slices.Insert(whole(), row.before, row.is)); len(problems) == 0 {
			t.Errorf("%s, and nothing is told", name)
		}
	}
	for _, decision := range []int{1, 10} {
		if problems := foldSchedules(apart(whole(), decision)); len(problems) == 0 {
			t.Errorf("the run of decision %d stands outside of its entry, and nothing is told", decision)
		}
	}
}

// changed is another definition with the same ticks.
func changed(next events.Millis) *events.ScheduleSet {
	b := definition(next)
	b.Plan.Behavior = "sleep"
	return b
}

// apart gives the run of a decision an entry of its own.
func apart(all []entry, n int) []entry {
	said := all[n].said
	all[n].said = said[:1]
	return slices.Insert(all, n+1, entry{all[n].at, said[1:]})
}

func skip(from, to events.Millis) *events.Ticked {
	return ticked(events.TickSkipped, events.TickOverlap, from, to)
}

func skips(tick events.Millis) []events.Event { return []events.Event{of(skip(tick, tick))} }

func TestSchedules_KeepTheirNewestRunsUntilTheyEnd(t *testing.T) {
	var s check.ScheduleFold
	none := func(events.TaskID) bool { return false }
	tell := func(ref events.Ref, id events.TaskID, body events.Body, final bool) []events.TaskID {
		ev := events.Event{
			Task:     id,
			Position: events.Position{Ref: ref},
			Body:     body,
		}
		if ev.Kind().Record() == events.OfTask {
			return s.Task(&ev, check.TaskState{
				Life:  ref,
				Final: final,
				Run:   events.RunByHand,
			})
		}
		_, left := s.Apply(&ev, none)
		return left
	}
	record := events.ScheduleRecord("s")
	tell(1, record, definition(1), false)
	tell(2, "s/run:1", &events.Created{}, false)
	tell(2, "s/run:1", &events.Succeeded{}, true)
	tell(3, "s/run:2", &events.Created{}, false)
	if !s.Holds("s/run:1") || s.Schedule("s").Active != 1 {
		t.Errorf("holds run 1: %t, of %+v", s.Holds("s/run:1"), s.Schedule("s"))
	}
	left := tell(3, "s/run:2", &events.Succeeded{}, true)
	if !slices.Equal(left, []events.TaskID{"s/run:1"}) || s.Holds("s/run:1") {
		t.Errorf("left %v", left)
	}
	left = tell(4, record, &events.ScheduleEnded{}, false)
	if !slices.Equal(left, []events.TaskID{"s/run:2"}) || s.Schedule("s").There {
		t.Errorf("left %v of %+v", left, s.Schedule("s"))
	}
}

// A correction never shows a date and time again that clocks have shown at a tick since the definition was recorded. Of
// a tick before that an owner compares nothing.
func TestSchedules_HoldACorrectionToTheClocksOfTheLastTick(t *testing.T) {
	for recorded, wrong := range map[events.Millis]int{1: 1, 2: 1, 3: 0} {
		set := definition(2)
		set.Plan.Cron, set.Plan.Zone, set.Offset = "0/1 0,1 0 * * ?", "Europe/Berlin", 3600
		first := created(2)
		first[1].Body.(*events.Created).NotBefore = 3 * second
		tick := first[0].Body.(*events.Ticked)
		tick.Next, tick.ToOffset = 3603*second, 3600
		correct := &events.Ticked{Decision: events.TickCorrected, Next: 5 * second}
		all := []entry{
			{recorded, []events.Event{of(set)}},
			{3, first},
			{4, []events.Event{of(correct)}},
		}
		problems := foldSchedules(all)
		if len(problems) != wrong || strings.Count(strings.Join(problems, ""), "is corrected to") != wrong {
			t.Errorf("recorded at %d: %q", recorded, problems)
		}
	}
}

// The last tick before the end of a schedule is the newest one, however late it has its run.
func TestSchedules_TakeALateRunOfTheLastTick(t *testing.T) {
	for end, wrong := range map[events.Millis]int{0: 1, 3: 1, 2: 0} {
		set, late := definition(2), created(2)
		set.Plan.End = end * second
		late[1].Body.(*events.Created).NotBefore = 20 * second
		if end == 2 {
			late[0].Body.(*events.Ticked).Next = 0
		}
		problems := foldSchedules([]entry{{1, []events.Event{of(set)}}, {20, late}})
		if len(problems) != wrong || strings.Count(strings.Join(problems, ""), "is not the newest") != wrong {
			t.Errorf("end %d: %q", end, problems)
		}
	}
}
