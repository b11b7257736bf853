package check_test

import (
	"strconv"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/internal/runid"
)

// often is the plan of a schedule of each second, which keeps one run.
func often() events.SchedulePlan {
	p := nightly
	p.Cron, p.Keep = "0/1 * * * * ?", 1
	return p
}

// ofNightly returns the shard of schedule nightly, and its record.
func ofNightly() (shard int, record events.TaskID) {
	record = events.ScheduleRecord("nightly")
	return record.Shard(shards), record
}

// sets defines the schedule, whose next tick is so many seconds after the beginning.
func (b *builder) sets(p events.SchedulePlan, next int64) { b.setsFor("", p, next) }

// setsFor is sets with a reason.
func (b *builder) setsFor(reason string, p events.SchedulePlan, next int64) {
	shard, _ := ofNightly()
	set := events.ScheduleSet{Plan: p, Next: begin + events.Millis(1000*next)}
	if next == 0 {
		set.Next = 0
	}
	b.set(shard, set.Recorded(reason))
}

// named returns a plan whose runs are named by UUIDs.
func named(p events.SchedulePlan) events.SchedulePlan {
	p.Names = events.NamesByUUID
	return p
}

// firesAs is fires for a schedule whose runs are named by UUIDs.
func (b *builder) firesAs(tick int64, run events.TaskID, of events.RunOrigin) {
	b.reach(tick)
	decided, made := decision(events.TickCreated, events.TickNoCause, tick, tick), b.runOf()
	decided.Run, made.Ties.Run = run, of
	b.entry(run, decided, made)
	b.runs(run)
}

// steers records events of the schedule, which its callers ask for.
func (b *builder) steers(bodies ...events.Body) {
	shard, _ := ofNightly()
	b.set(shard, bodies...)
}

// decision decides a tick, in seconds after the beginning, or those up to another one.
func decision(d events.TickDecision, c events.TickCause, from, to int64) *events.Ticked {
	at := func(s int64) events.Millis { return begin + events.Millis(1000*s) }
	b := &events.Ticked{
		Decision: d,
		Cause:    c,
		From:     at(from),
		To:       at(to),
		Next:     at(to + 1),
	}
	if d == events.TickCreated {
		b.Run = tickRun(from)
	}
	return b
}

// tickRun returns the run of a tick.
func tickRun(tick int64) events.TaskID {
	return events.TaskID("nightly/tick:" + strconv.FormatInt(int64(begin)+1000*tick, 10))
}

// runOf returns the body of a run of the schedule.
func (b *builder) runOf() *events.Created {
	shard, _ := ofNightly()
	return &events.Created{
		Behavior:  "work",
		Policy:    b.chains[shard][events.OfSchedule].set.Policy,
		NotBefore: b.now + 1,
		Ties:      events.Ties{Schedule: "nightly", By: "ada"},
	}
}

// fires decides a tick once its time has come, and creates its run.
func (b *builder) fires(tick int64) {
	b.reach(tick)
	b.entry(tickRun(tick), decision(events.TickCreated, events.TickNoCause, tick, tick), b.runOf())
}

// reach lets time pass until so many seconds after the beginning.
func (b *builder) reach(second int64) {
	if at := begin + events.Millis(1000*second); at > b.now {
		b.pass(time.Duration(at-b.now) * time.Millisecond)
	}
}

// entry commits events of the schedule and of one of its runs.
func (b *builder) entry(run events.TaskID, bodies ...events.Body) {
	shard, record := ofNightly()
	b.commit(shard, bodies, func(body events.Body) (*tracked, events.TaskID) {
		if body.Kind().Record() == events.OfSchedule {
			return b.chains[shard][events.OfSchedule], record
		}
		return b.track(string(run)), run
	})
}

// runs starts a run, and lets it succeed.
func (b *builder) runs(id events.TaskID) {
	b.start(string(id), "n-1")
	b.succeed(string(id))
}

// call records a call about the schedule that was acknowledged.
func (b *builder) call(verb history.Verb, call history.ScheduleCall) *history.Operation {
	_, record := ofNightly()
	return b.op(history.Operation{Client: 5, Verb: verb, Task: string(record), Schedule: &call}, nil)
}

// hand asks for a run, which is created.
func (b *builder) hand(id string) *history.Operation {
	_, record := ofNightly()
	return b.op(history.Operation{
		Client:   6,
		Verb:     history.RunSchedule,
		Task:     string(record),
		Schedule: &history.ScheduleCall{Run: id},
	}, func() { b.add(id, b.runOf()) })
}

// shown returns the schedule as it is: with the next tick and the last decided one, in seconds.
func (b *builder) shown(next, last int64) history.ShownSchedule {
	shard, _ := ofNightly()
	return history.ShownSchedule{
		Name:    "nightly",
		Version: b.chains[shard][events.OfSchedule].version,
		Next:    begin + events.Millis(1000*next),
		Last:    begin + events.Millis(1000*last),
		Left:    -1,
	}
}

// listsSchedules acknowledges a list, later than an owner can be one without knowing that it is none.
func (b *builder) listsSchedules(told ...history.ShownSchedule) {
	b.pass(time.Second)
	b.op(history.Operation{Client: 7, Verb: history.ListSchedules, Schedule: &history.ScheduleCall{Shown: told}}, nil)
}

// stands has a schedule with one tick that had its run.
func (b *builder) stands() {
	b.sets(often(), 1)
	b.fires(1)
	b.runs(tickRun(1))
}

// lastCall returns the last call that was recorded.
func (b *builder) lastCall() *history.Operation { return &b.run.Operations[len(b.run.Operations)-1] }

// forgetCall drops it.
func (b *builder) forgetCall() { b.run.Operations = b.run.Operations[:len(b.run.Operations)-1] }

// Ids of runs, and what made them, are held to the rule of names of the schedule, and runs by hand to their priority.
func TestAll_TakesRunsThatAreNamedByUUIDs(t *testing.T) {
	b := newBuilder(t)
	b.sets(named(often()), 1)
	b.firesAs(1, runid.OfTick("nightly", begin+1000), events.RunOfTick)
	idle := named(often())
	idle.Keep++
	b.setsFor("why", idle, 2)
	idle.Cron, idle.PauseOnFailure = "", false
	b.sets(idle, 0)
	b.byHand(300).Schedule.Priority = 300
	b.reach(100)
	b.steers(&events.ScheduleEnded{})
	b.sound()
}

// byHand asks for a run of a schedule whose runs are named by UUIDs.
func (b *builder) byHand(priority int64) *history.Operation {
	_, record := ofNightly()
	id := runid.OfHand("nightly", "x")
	o := b.op(history.Operation{
		Client:   6,
		Verb:     history.RunSchedule,
		Task:     string(record),
		Schedule: &history.ScheduleCall{Run: string(id)},
	}, func() {
		made := b.runOf()
		made.Ties.Run, made.Priority = events.RunByHand, priority
		b.add(string(id), made)
	})
	b.runs(id)
	return o
}

// shares asks for a run by hand, with a key, that another run is shared for.
func (b *builder) shares(id, key string) *history.Operation {
	_, record := ofNightly()
	return b.op(history.Operation{
		Client:   6,
		Verb:     history.RunSchedule,
		Task:     string(record),
		Request:  key,
		Joined:   true,
		Schedule: &history.ScheduleCall{Run: id},
	}, func() {
		b.event = func(ev *events.Event) { ev.RequestID = string(events.TaskOfRequest("ada", "nightly", key)) }
		b.add(id, &events.Joined{})
		b.event = nil
	})
}

func TestAll_TakesWhatSchedulesMayDo(t *testing.T) {
	b := newBuilder(t)
	b.stands()
	told := b.shown(2, 1)
	b.call(history.GetSchedule, history.ScheduleCall{Shown: []history.ShownSchedule{told}})
	b.hand("nightly/run:1")
	b.call(history.RunSchedule, history.ScheduleCall{Run: "nightly/run:1"}).Joined = true
	b.shares("nightly/run:1", "key")
	b.reach(4)
	b.runs("nightly/run:1")
	b.entry("", decision(events.TickSkipped, events.TickOverlap, 2, 4))
	b.steers(&events.SchedulePaused{})
	b.call(history.PauseSchedule, history.ScheduleCall{})
	b.reach(60)
	b.steers(&events.ScheduleResumed{})
	b.entry("", decision(events.TickMissed, events.TickPaused, 5, 60))
	b.fires(61)
	b.start(string(tickRun(61)), "n-1")
	b.returns(string(tickRun(61)), "!no").Final = true
	b.entry(tickRun(61), b.failed(string(tickRun(61)), "no", 0))
	replaces := often()
	replaces.Overlap, replaces.PauseOnFailure = events.OverlapReplace, true
	b.sets(replaces, 63)
	b.fires(63)
	b.reach(64)
	b.event = func(ev *events.Event) { ev.Origin = 0 }
	b.entry(tickRun(63), b.failed(string(tickRun(63)), events.CodeCancelled, 0))
	b.fires(64)
	b.start(string(tickRun(64)), "n-1")
	b.returns(string(tickRun(64)), "!no").Final = true
	b.entry(tickRun(64), b.failed(string(tickRun(64)), "no", 0), &events.SchedulePaused{Failed: tickRun(64)})
	b.call(history.DeleteSchedule, history.ScheduleCall{Seen: 1}).Answer = history.Refused
	b.steers(&events.ScheduleEnded{})
	b.call(history.ResumeSchedule, history.ScheduleCall{}).Answer = history.Absent
	b.sound()
}

func TestAll_TakesATickThatADefinitionPutsOff(t *testing.T) {
	b := newBuilder(t)
	b.sets(often(), 1)
	late := often()
	late.Jitter = 3000
	b.sets(late, 1)
	b.reach(4)
	b.steers(&events.ScheduleEnded{})
	b.sound()
}

var schedules = []planted{
	{"a definition that nobody asked for", "7 acknowledged", func(b *builder) {
		b.sets(nightly, 90_000)
		b.forgetCall()
	}, nil},
	{"a definition for another reason", "7 acknowledged", func(b *builder) {
		b.setsFor("why", nightly, 90_000)
		b.lastCall().Reason = "another"
	}, nil},
	{"a reason that nobody gave", "7 acknowledged", func(b *builder) {
		b.setsFor("why", nightly, 90_000)
		b.lastCall().Reason = ""
	}, nil},
	{"another definition than was asked for", "7 acknowledged", func(b *builder) {
		b.sets(nightly, 90_000)
		other := often()
		b.lastCall().Schedule.Plan = &other
	}, nil},
	{"a definition that is not in the journal", "linear", func(b *builder) {
		b.sets(nightly, 90_000)
		plan := often()
		b.call(history.SetSchedule, history.ScheduleCall{Plan: &plan, Changed: true, Version: 5})
	}, nil},
	{"an older definition that is in force", "linear", func(b *builder) {
		b.sets(nightly, 90_000)
		call := *b.lastCall().Schedule
		b.sets(often(), 90_000)
		call.Changed = false
		b.call(history.SetSchedule, call)
	}, nil},
	{"a change of a version that the caller has not seen", "linear", func(b *builder) {
		b.sets(nightly, 90_000)
		b.sets(often(), 90_000)
		b.lastCall().Schedule.Seen = 1
	}, nil},
	{"a read of another tick", "linear", func(b *builder) {
		b.sets(nightly, 90_000)
		told := b.shown(90_001, 0)
		told.Last = 0
		b.call(history.GetSchedule, history.ScheduleCall{Shown: []history.ShownSchedule{told}})
	}, nil},
	{"a pause that is not in the journal", "linear", func(b *builder) {
		b.sets(nightly, 90_000)
		b.call(history.PauseSchedule, history.ScheduleCall{})
	}, nil},
	{"a deletion that is not in the journal", "linear", func(b *builder) {
		b.sets(nightly, 90_000)
		b.call(history.DeleteSchedule, history.ScheduleCall{})
	}, nil},
	{"a schedule that is told not to be there", "linear", func(b *builder) {
		b.sets(nightly, 90_000)
		b.call(history.PauseSchedule, history.ScheduleCall{}).Answer = history.Absent
	}, nil},
	{"a resumption that nobody asked for", "7 acknowledged", func(b *builder) {
		b.sets(nightly, 90_000)
		b.steers(&events.SchedulePaused{}, &events.ScheduleResumed{})
		b.forgetCall()
	}, nil},
	{"a tick that somebody asked for", "7 acknowledged", func(b *builder) {
		b.sets(often(), 1)
		b.reach(2)
		b.event = func(ev *events.Event) { ev.Origin = 1 }
		b.entry("", decision(events.TickMissed, events.TickOld, 1, 1))
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a run by hand that nobody asked for", "7 acknowledged", func(b *builder) {
		b.sets(nightly, 90_000)
		b.hand("nightly/run:1")
		b.forgetCall()
		b.runs("nightly/run:1")
	}, nil},
	{"a run by hand that is not in the journal", "7 acknowledged", func(b *builder) {
		b.sets(nightly, 90_000)
		b.call(history.RunSchedule, history.ScheduleCall{Run: "nightly/run:1"})
	}, nil},
	{"a run by hand of another schedule", "7 acknowledged", func(b *builder) {
		b.sets(nightly, 90_000)
		b.call(history.RunSchedule, history.ScheduleCall{Run: "other/run:1"})
	}, nil},
	{"a run that somebody ends who did not ask for it", "7 acknowledged", func(b *builder) {
		b.sets(often(), 1)
		b.fires(1)
		b.reach(2)
		b.entry(tickRun(1), b.failed(string(tickRun(1)), events.CodeCancelled, 0))
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a tick that is decided twice after a take-over", "2 legal", func(b *builder) {
		b.stands()
		b.own("n-2")
		b.entry("", decision(events.TickSkipped, events.TickOverlap, 1, 1))
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a second run beside one that goes on", "2 legal", func(b *builder) {
		b.sets(often(), 1)
		b.fires(1)
		b.fires(2)
		b.runs(tickRun(1))
		b.runs(tickRun(2))
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a run outside of the entry of its tick", "2 legal", func(b *builder) {
		b.sets(often(), 1)
		b.reach(1)
		b.entry("", decision(events.TickCreated, events.TickNoCause, 1, 1))
		b.entry(tickRun(1), b.runOf())
		b.runs(tickRun(1))
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a schedule in a shard where it does not belong", "2 legal", func(b *builder) {
		shard, record := ofNightly()
		of := func(events.Body) (*tracked, events.TaskID) { return &tracked{}, record }
		b.commit(1-shard, []events.Body{&events.ScheduleSet{Plan: nightly, Next: 1}}, of)
	}, nil},
	{"a tick that is due and waits", "8 ended", func(b *builder) {
		b.sets(often(), 1)
		b.reach(4)
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a tick that a definition no longer puts off, and that waits", "8 ended", func(b *builder) {
		late := often()
		late.Jitter = 60_000
		b.sets(late, 1)
		b.sets(often(), 1)
		b.reach(4)
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a tick that is due and waits for ever", "8 ended", func(b *builder) { b.sets(often(), 1) }, nil},
	{"a tick that waits although runs may overlap", "8 ended", func(b *builder) {
		p := often()
		p.Overlap = events.OverlapAllow
		b.sets(p, 1)
		b.fires(1)
		b.reach(5)
		b.steers(&events.ScheduleEnded{})
		b.runs(tickRun(1))
	}, nil},
	{"a run that is kept and was forgotten", "3 served", func(b *builder) {
		p := nightly
		p.Keep, p.Policy.RetainCount = 2, 1
		b.sets(p, 90_000)
		for _, id := range []string{"nightly/run:1", "nightly/run:2"} {
			b.hand(id)
			b.runs(events.TaskID(id))
		}
		delete(b.tasks, "nightly/run:1")
	}, nil},
	{"a tick that has its run while the store is almost full", "16 admission", func(b *builder) {
		b.sets(often(), 10)
		b.run.Faults = append(b.run.Faults, history.Fault{
			Kind:  history.AlmostFullKind,
			From:  b.clock,
			Until: b.clock + int64(time.Minute),
			Proof: "full",
		})
		b.fires(10)
		b.runs(tickRun(10))
		b.steers(&events.ScheduleEnded{})
	}, wallEnds},
	{"a list that tells a schedule as it never was", "17 lists", func(b *builder) {
		b.stands()
		b.listsSchedules(b.shown(3, 2))
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a run with the UUID of another tick", "2 legal", func(b *builder) {
		b.sets(named(often()), 1)
		b.firesAs(1, runid.OfTick("nightly", begin+2000), events.RunOfTick)
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a run of a tick that tells to be of another origin", "2 legal", func(b *builder) {
		b.sets(named(often()), 1)
		b.firesAs(1, runid.OfTick("nightly", begin+1000), events.RunOfFill)
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a run by hand of another priority than was asked for", "7 acknowledged", func(b *builder) {
		b.sets(named(nightly), 90_000)
		b.byHand(200).Schedule.Priority = 300
	}, nil},
	{"a run that is shared for nobody", "7 acknowledged", func(b *builder) {
		b.sets(nightly, 90_000)
		b.hand("nightly/run:1")
		b.shares("nightly/run:1", "key").Answer = history.Refused
		b.runs("nightly/run:1")
	}, nil},
	{"a run that is shared for another key", "7 acknowledged", func(b *builder) {
		b.sets(nightly, 90_000)
		b.hand("nightly/run:1")
		b.shares("nightly/run:1", "key").Request = "other"
		b.runs("nightly/run:1")
	}, nil},
	{"a list that tells a schedule twice", "17 lists", func(b *builder) {
		b.stands()
		b.listsSchedules(b.shown(2, 1), b.shown(2, 1))
		b.steers(&events.ScheduleEnded{})
	}, nil},
	{"a list that leaves a schedule out", "17 lists", func(b *builder) {
		b.record = func(r *history.Record) { r.At = b.clock }
		b.sets(nightly, 90_000)
		b.listsSchedules()
	}, nil},
}
