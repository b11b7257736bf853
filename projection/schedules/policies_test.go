package schedules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/runid"
	"taskledger/projection/schedules"
)

// The table has what must stand in the journal of a schedule with a tick each ten minutes, for each pair of overlap and
// misfire: down for an hour from 10:05 to 11:08 with the run of 10:00 ended, the same with that run going on until
// 11:09, and paused for that hour. Ticks are late after five minutes.
func TestDecide_EveryPairOfOverlapAndMisfire(t *testing.T) {
	const (
		newest  = "missed old 10:10..10:50, created 11:00"
		late    = "missed late 10:10..11:00"
		each    = "created 10:10, created 10:20, created 10:30, created 10:40, created 10:50, created 11:00"
		skipped = "skipped overlap 10:10..11:00"
	)
	for _, row := range []struct {
		overlap    events.Overlap
		misfire    events.Misfire
		down, busy string
	}{
		{events.OverlapForbid, events.MisfireOnce, newest, skipped},
		{events.OverlapForbid, events.MisfireSkip, late, skipped},
		{events.OverlapForbid, events.MisfireAll, each, skipped},
		{events.OverlapAllow, events.MisfireOnce, newest, newest},
		{events.OverlapAllow, events.MisfireSkip, late, late},
		{events.OverlapAllow, events.MisfireAll, each, each},
		{events.OverlapReplace, events.MisfireOnce, newest, "skipped overlap 10:10..10:50, created 11:00"},
		{events.OverlapReplace, events.MisfireSkip, late, late},
		{events.OverlapReplace, events.MisfireAll, each, "skipped overlap 10:10..10:50, created 11:00"},
	} {
		begin := func() *world {
			w := newWorld(t, every(millis(10*time.Minute)), clock("09:55"))
			w.set(planOf(row.overlap, row.misfire))
			w.now = clock("10:00")
			w.settle()
			w.told = w.told[1:] // created 10:00
			return w
		}
		check := func(what string, w *world, want string) {
			t.Helper()
			for range 20 { // one after the other
				w.endAll()
				w.settle()
			}
			if got := fmt.Sprint(w.told); got != "["+joined(want)+"]" {
				t.Errorf("overlap %d, misfire %d, %s: %s, want %s", row.overlap, row.misfire, what, got, want)
			}
			if s := w.schedule(); s.Next != clock("11:10") || s.Decided != clock("11:00") {
				t.Errorf("overlap %d, misfire %d, %s: next %s after %s", row.overlap, row.misfire, what, at(s.Next), at(s.Decided))
			}
		}

		w := begin()
		w.endAll()
		w.now = clock("11:08")
		w.settle()
		check("down", w, row.down)

		w = begin()
		run := w.start(w.active()[0])
		w.now = clock("11:08")
		w.settle()
		replaced := row.overlap == events.OverlapReplace && row.misfire != events.MisfireSkip // what comes too late replaces none
		if run = w.shard.Task(run.ID); run.Cancelled != replaced {
			t.Errorf("overlap %d, misfire %d: the run is cancelled: %t", row.overlap, row.misfire, run.Cancelled)
		}
		w.now = clock("11:09")
		w.end(run, "")
		w.settle()
		check("down and busy", w, row.busy)

		w = begin()
		w.endAll()
		w.now = clock("10:05")
		w.must(w.record(&events.SchedulePaused{}))
		w.now = clock("11:08")
		w.settle()
		if len(w.told) > 0 {
			t.Errorf("overlap %d, misfire %d: %v while it is paused", row.overlap, row.misfire, w.told)
		}
		w.seal()
		w.must(w.record(&events.ScheduleResumed{}))
		w.seal()
		w.settle()
		check("paused", w, "missed paused 10:10..11:00")
	}
}

// joined writes a list as fmt does.
func joined(list string) string {
	var text []byte
	for i := 0; i < len(list); i++ {
		if list[i] != ',' {
			text = append(text, list[i])
		}
	}
	return string(text)
}

// A schedule that fires each second costs one event a run, however long that takes.
func TestDecide_WhatIsSkippedMeanwhileIsOneEvent(t *testing.T) {
	w := newWorld(t, every(1000), clock("10:00"))
	w.set(planOf(events.OverlapForbid, events.MisfireOnce))
	w.now += 1000
	w.settle()
	run := w.start(w.active()[0])
	for range 3600 {
		w.now += 1000
		if w.decide() {
			t.Fatal("something is decided while the run has not ended")
		}
	}
	w.end(run, "")
	w.settle()
	if n := len(w.ticked); n != 2 || w.ticked[1].To-w.ticked[1].From != 3_599_000 {
		t.Errorf("%d decisions, the last from %d to %d", n, w.ticked[n-1].From, w.ticked[n-1].To)
	}
}

// Of very many undecided ticks the newest hundred have their runs, and those that come meanwhile do not take their
// place.
func TestDecide_AllRunsTheNewestHundredOneAfterTheOther(t *testing.T) {
	w := newWorld(t, every(1000), clock("10:00"))
	w.set(planOf(events.OverlapForbid, events.MisfireAll))
	w.now = clock("11:00")
	created := 0
	for range 300 {
		w.settle()
		if n := len(w.active()); n > 1 {
			t.Fatalf("%d runs at a time", n)
		}
		w.now += 5000
		w.endAll()
	}
	for _, b := range w.ticked {
		if b.Decision == events.TickCreated && b.From <= clock("11:00") {
			created++
		}
	}
	if first := w.ticked[0]; created != 100 || first.Decision != events.TickMissed || first.To-first.From != 3_499_000 {
		t.Errorf("%d runs of ticks that were undecided, and %v first", created, tell(first))
	}
}

// Runs that take longer than the time from tick to tick make no backlog: those of ticks that had to wait for others are
// told from those that nobody decided in time.
func TestDecide_AllIsUpToDateOnceTheUndecidedHaveTheirRuns(t *testing.T) {
	for overlap, most := range map[events.Overlap]int{events.OverlapAllow: 100, events.OverlapReplace: 1} {
		w := newWorld(t, every(1000), clock("10:00"))
		w.set(planOf(overlap, events.MisfireAll))
		w.now += 20_000 // down
		ends := map[events.TaskID]events.Millis{}
		behind := 0
		for second := range 300 {
			w.now += 1000
			for _, run := range w.active() {
				switch at, begun := ends[run.ID]; {
				case !begun:
					ends[run.ID] = w.now + 3000
				case at <= w.now || run.Cancelled:
					w.end(run, "")
				}
			}
			w.settle()
			if n := len(w.active()); n > most {
				t.Fatalf("overlap %d: %d runs at a time", overlap, n)
			}
			if second > 200 && w.schedule().Next <= w.now-2000 {
				behind++
			}
		}
		if behind > 0 {
			t.Errorf("overlap %d: it is behind in %d seconds, and ends with tick %s at %s", overlap, behind,
				at(w.schedule().Next), at(w.now))
		}
	}
}

// A tick that jitter puts off is judged by the time at which it is due: what ended before is no run that had not ended.
func TestDecide_JitterMakesNoTickOverlapThatIsDueLater(t *testing.T) {
	w := newWorld(t, every(10_000), clock("10:00"))
	plan := planOf(events.OverlapForbid, events.MisfireOnce)
	plan.Jitter = 9000
	w.set(plan)
	delay := w.schedule().Delay()
	if delay < 1000 {
		t.Fatalf("the jitter of the name is %d ms, which tells nothing", delay)
	}
	for range 20 {
		w.now = w.schedule().Next + delay
		w.settle()
		run := w.start(w.active()[0])
		w.seal()
		w.now += 9500 // beyond the time of the next tick, and before it is due
		w.end(run, "")
		w.settle()
	}
	for _, told := range w.told {
		if !strings.HasPrefix(told, "created") {
			t.Fatalf("%v", w.told)
		}
	}
	w.now = w.schedule().Next + delay
	w.settle()
	run := w.start(w.active()[0])
	w.seal()
	w.now += 15_000 // beyond when the next tick is due
	w.end(run, "")
	w.settle()
	if last := w.ticked[len(w.ticked)-1]; last.Decision != events.TickSkipped || last.From != last.To {
		t.Errorf("%s, want the one tick that was due meanwhile skipped", tell(last))
	}
}

// A run by hand and a pause explain the ticks that were due meanwhile, and none that was undecided before: what becomes
// of that misfire decides.
func TestDecide_UndecidedTicksFromBeforeARunOrAPauseAreMisfires(t *testing.T) {
	for what, meanwhile := range map[string]func(w *world){
		"a run": func(w *world) {
			hand := w.hand("x")
			w.now += millis(25 * time.Minute)
			w.end(hand, "")
		},
		"a pause": func(w *world) {
			w.must(w.record(&events.SchedulePaused{}))
			w.seal()
			w.now += millis(25 * time.Minute)
			w.must(w.record(&events.ScheduleResumed{}))
			w.seal()
		},
	} {
		w := newWorld(t, every(millis(10*time.Minute)), clock("09:55"))
		w.set(planOf(events.OverlapForbid, events.MisfireOnce))
		w.now = clock("12:05") // nothing could be decided
		meanwhile(w)
		for range 3 {
			w.settle()
			w.endAll()
		}
		want := "[missed old 10:00..11:50 created 12:00 skipped overlap 12:10..12:30]"
		if what == "a pause" {
			want = "[missed old 10:00..11:50 created 12:00 missed paused 12:10..12:30]"
		}
		if got := fmt.Sprint(w.told); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
}

// A tick that has no run, since it fell into a pause or comes too late, replaces none.
func TestDecide_ATickWithoutARunReplacesNone(t *testing.T) {
	for misfire, want := range map[events.Misfire]string{
		events.MisfireOnce: "missed paused 10:10",
		events.MisfireSkip: "missed late 10:10",
	} {
		w := newWorld(t, every(millis(10*time.Minute)), clock("09:55"))
		w.set(planOf(events.OverlapReplace, misfire))
		w.now = clock("10:00")
		w.settle()
		run := w.start(w.active()[0])
		w.seal()
		if misfire == events.MisfireOnce {
			w.now = clock("10:05")
			w.must(w.record(&events.SchedulePaused{}))
			w.seal()
		}
		w.now = clock("10:18")
		if misfire == events.MisfireOnce {
			w.must(w.record(&events.ScheduleResumed{}))
			w.seal()
		}
		w.settle()
		if w.shard.Task(run.ID).Cancelled || w.told[len(w.told)-1] != want {
			t.Errorf("misfire %d: cancelled %t, %v, want %s", misfire, w.shard.Task(run.ID).Cancelled, w.told, want)
		}
	}
}

// Where runs may overlap, a backfill waits for its own runs alone.
func TestDecide_ABackfillBesideRunsThatMayOverlap(t *testing.T) {
	w := newWorld(t, every(millis(time.Minute)), clock("10:00"))
	w.set(planOf(events.OverlapAllow, events.MisfireOnce))
	w.now += 60_000
	w.settle()
	w.start(w.active()[0]) // and does not end
	w.must(w.record(&events.BackfillSet{From: clock("09:10"), To: clock("09:11"), Ticks: 2}))
	w.seal()
	w.settle()
	if n := len(w.active()); n != 2 {
		t.Fatalf("%d runs, want the one of the tick and the first one of the backfill", n)
	}
	for _, run := range w.active() {
		if run.RunOf() == events.RunOfFill {
			w.end(run, "")
		}
	}
	w.settle()
	if last := w.told[len(w.told)-1]; last != "filled 09:11" {
		t.Errorf("%v", w.told)
	}
}

// A final failure of a tick's run pauses the schedule in its entry; a cancel and a run by hand do not.
func TestEnded_PausesOnFailureOfATick(t *testing.T) {
	for _, names := range rules {
		pausesOnFailureOfATick(t, names)
	}
}

func pausesOnFailureOfATick(t *testing.T, names events.RunNames) {
	w := newWorld(t, every(60_000), clock("10:00"))
	plan := planOf(events.OverlapForbid, events.MisfireOnce)
	plan.PauseOnFailure, plan.Names = true, names
	w.set(plan)
	w.now = clock("10:01")
	w.settle()
	w.end(w.active()[0], events.CodeCancelled)
	if w.schedule().Paused != nil {
		t.Fatal("a cancelled run pauses the schedule")
	}
	if w.end(w.hand("x"), "broken"); w.schedule().Paused != nil {
		t.Fatal("a run by hand pauses the schedule")
	}
	w.must(w.record(&events.BackfillSet{From: clock("09:00"), To: clock("09:00"), Ticks: 1}))
	w.seal()
	w.settle()
	if w.end(w.active()[0], "broken"); w.schedule().Paused != nil {
		t.Fatal("the run of a backfill pauses the schedule")
	}
	w.settle() // ends the backfill
	w.now = clock("10:02")
	w.settle()
	run := w.active()[0]
	w.end(run, "broken")
	if p := w.schedule().Paused; p == nil || p.Failed != run.ID || p.Since != w.now {
		t.Fatalf("paused: %+v", p)
	}
	if w.now = clock("10:05"); w.decide() {
		t.Error("a paused schedule decides")
	}
}

// A run of a tick is never joined to a task that has its id.
func TestDecide_ATakenIDIsSkipped(t *testing.T) {
	w := newWorld(t, every(60_000), clock("10:00"))
	for i, id := range []events.TaskID{
		"nightly/tick:" + events.TaskID(fmt.Sprint(int64(clock("10:01")))), runid.OfTick(name, clock("10:02")),
	} {
		_, err := w.apply(nil, events.Event{
			Task: id,
			Seq:  1,
			Body: &events.Created{Behavior: "other", Policy: policy, NotBefore: w.now},
		})
		w.must(err)
		plan := planOf(events.OverlapAllow, events.MisfireOnce)
		plan.Names = rules[i]
		w.set(plan)
		w.now += 60_000
		w.settle()
	}
	if want := []string{"skipped taken 10:01", "skipped taken 10:02"}; !slices.Equal(w.told, want) {
		t.Errorf("%v, want %v", w.told, want)
	}
	if n := w.schedule().Active(); n != 0 {
		t.Errorf("%d tasks count that are no runs of the schedule", n)
	}
}

// A backfill runs its ticks one at a time, the oldest first, beside a schedule that is paused.
func TestDecide_BackfillRunsOneTickAtATime(t *testing.T) {
	w := newWorld(t, every(60_000), clock("10:00"))
	w.set(planOf(events.OverlapForbid, events.MisfireOnce))
	w.must(w.record(&events.SchedulePaused{}))
	w.must(w.record(&events.BackfillSet{From: clock("09:10"), To: clock("09:12"), Ticks: 3}))
	w.seal()
	for range 3 {
		w.settle()
		if n := len(w.active()); n != 1 {
			t.Fatalf("%d runs at a time", n)
		}
		w.endAll()
	}
	w.settle()
	if want := []string{"filled 09:10", "filled 09:11", "filled 09:12"}; !slices.Equal(w.told, want) || w.schedule().Fill != nil {
		t.Errorf("%v, want %v, and no backfill: %+v", w.told, want, w.schedule().Fill)
	}
}

// A tick that a backfill has had runs again in another one, as a run of its own.
func TestDecide_ABackfillRunsTicksAgainThatAnEarlierOneHad(t *testing.T) {
	w := newWorld(t, every(millis(time.Minute)), clock("10:00"))
	w.set(planOf(events.OverlapForbid, events.MisfireOnce))
	w.must(w.record(&events.SchedulePaused{}))
	w.seal()
	for range 2 {
		w.now += 1000
		w.must(w.record(&events.BackfillSet{From: clock("09:10"), To: clock("09:11"), Ticks: 2}))
		w.seal()
		for range 3 {
			w.settle()
			w.endAll()
		}
	}
	if want := []string{"filled 09:10", "filled 09:11", "filled 09:10", "filled 09:11"}; !slices.Equal(w.told, want) {
		t.Fatalf("%v, want %v", w.told, want)
	}
	runs := map[events.TaskID]bool{}
	for _, b := range w.ticked {
		runs[b.Run] = true
	}
	if len(runs) != 4 {
		t.Errorf("runs %v", runs)
	}
}

// The newest ended runs are kept, whatever retention forgets of others.
func TestHolds_TheNewestRunsAreKept(t *testing.T) {
	w := newWorld(t, every(60_000), clock("10:00"))
	plan := planOf(events.OverlapForbid, events.MisfireOnce)
	plan.Policy.RetainCount = 1
	w.set(plan)
	for range 10 {
		w.now += 60_000
		w.settle()
		w.endAll()
	}
	w.now += events.Millis(policy.Retain.Milliseconds()) * 2
	other, err := w.apply(nil, events.Event{
		Task: "other",
		Seq:  1,
		Body: &events.Created{Behavior: "work", Policy: policy, NotBefore: w.now},
	})
	w.must(err)
	w.end(other, "")
	kept := w.schedule().Kept()
	if len(kept) != 3 {
		t.Fatalf("%v are kept, want 3", kept)
	}
	for _, id := range kept {
		if w.shard.Task(id) == nil {
			t.Errorf("run %s was forgotten", id)
		}
	}
	if w.shard.Live() != 0 || w.shard.Len() != 4 {
		t.Errorf("%d tasks of which %d live, want the three and the other", w.shard.Len(), w.shard.Live())
	}
	w.must(w.record(&events.ScheduleEnded{}))
	w.seal()
	w.begin()
	w.now += 1
	w.must(w.record(&events.ScheduleSet{Plan: plan, Next: w.ticks.Next(w.now)}))
	w.seal()
	if w.shard.Len() > 2 {
		t.Errorf("%d tasks are left after the schedule has ended", w.shard.Len())
	}
}

// What a process does each night is no different for a schedule that fires once a week.
func TestDecide_AProcessThatRestartsEveryNightRunsItsWeeklySchedule(t *testing.T) {
	w := newWorld(t, every(millis(7*24*time.Hour)), clock("10:00"))
	w.set(planOf(events.OverlapForbid, events.MisfireOnce))
	for range 4 * 7 {
		w.now += millis(20 * time.Hour)
		w.settle()
		w.endAll()
		w.now += millis(4 * time.Hour) // down
		w.shard = w.restored()
		w.begin()
		w.settle()
		w.endAll()
	}
	if n := len(w.ticked); n != 4 || strings.Contains(fmt.Sprint(w.told), "missed") {
		t.Errorf("%v", w.told)
	}
}

// A service that was down for two weeks does not run its daily work fourteen times.
func TestDecide_TwoWeeksOfDowntimeMakeOneRun(t *testing.T) {
	w := newWorld(t, every(millis(24*time.Hour)), clock("10:00"))
	w.set(planOf(events.OverlapForbid, events.MisfireOnce))
	w.now += millis(14 * 24 * time.Hour)
	for range 5 {
		w.settle()
		w.endAll()
	}
	if n := len(w.ticked); n != 2 || w.ticked[0].Decision != events.TickMissed || w.ticked[1].Decision != events.TickCreated {
		t.Errorf("%v", w.told)
	}
}

// However often a schedule fires whose runs do not end, there is a bound for them.
func TestDecide_RunsThatDoNotEndAreBounded(t *testing.T) {
	w := newWorld(t, every(1000), clock("10:00"))
	w.set(planOf(events.OverlapAllow, events.MisfireOnce))
	for range schedules.MaxActive + 10 {
		w.now += 1000
		w.settle()
	}
	last := w.ticked[len(w.ticked)-1]
	if n := w.schedule().Active(); n != schedules.MaxActive || last.Cause != events.TickTooMany {
		t.Errorf("%d runs, and %s", n, tell(last))
	}
}

// zone has a tick at each midnight of clocks that are so many seconds ahead of UTC.
type zone events.Millis

const wholeDay events.Millis = 24 * 60 * 60 * 1000

func (z zone) Next(after events.Millis) events.Millis {
	return (after+events.Millis(z)*1000)/wholeDay*wholeDay + wholeDay - events.Millis(z)*1000
}

func (z zone) Prev(before events.Millis) events.Millis { return z.Next(before-1) - wholeDay }
func (z zone) Offset(events.Millis) int64              { return int64(z) }
func (zone) Fixed() bool                               { return true }

// The owner decides a tick that another one has found by other data of the zone. That tick stands for the time that
// clocks showed there, whatever came since: the one that follows is of the next day.
func TestDecide_ATimeOfTheDayIsNotDecidedAgainByOtherData(t *testing.T) {
	for _, misfire := range []events.Misfire{events.MisfireOnce, events.MisfireSkip, events.MisfireAll} {
		for _, of := range []struct{ found, decides zone }{{3600, 3600}, {3605, 3600}, {3600, 3605}, {7200, 3600}, {3600, 7200}} {
			for _, late := range []events.Millis{0, 10_000, 7_200_000} {
				tick := of.found.Next(clock("10:00"))
				w := newWorld(t, every(wholeDay), clock("10:00"))
				plan := planOf(events.OverlapAllow, misfire)
				plan.Grace = wholeDay
				w.must(w.record(&events.ScheduleSet{Plan: plan, Next: tick, Offset: int64(of.found)}))
				w.seal()
				w.now = tick + late
				s := w.schedule()
				a := schedules.Find(s.Question(w.now, false), of.decides)
				w.all().MakeDue(w.now)
				step, is := w.all().Decide(s, a, w.now, func(events.TaskID) bool { return false })
				want := events.Ticked{
					Decision:   events.TickCreated,
					From:       tick,
					To:         tick,
					ToOffset:   int64(of.found),
					Run:        schedules.TickRun(name, tick),
					Next:       tick + wholeDay + events.Millis(of.found-of.decides)*1000,
					NextOffset: int64(of.decides),
				}
				if b, _ := step.Body.(*events.Ticked); !is || b == nil || *b != want {
					t.Errorf("misfire %d, found by %d, decided by %d, %d ms late: %+v, want %+v", misfire, of.found, of.decides, late, b, want)
				}
			}
		}
	}
}
