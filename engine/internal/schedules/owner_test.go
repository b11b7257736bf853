package schedules_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/schedules"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
	fold "taskledger/projection/schedules"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// owner drives the extension of an owner through its turns, as the owner of a shard does.
type owner struct {
	t     *testing.T
	state *projection.Shard
	shard.Extension
	now   events.Millis
	room  command.Room
	entry events.Builder
	told  []events.Event
	zones func(name string) (*time.Location, error)

	members *store.Membership // nil = all read everything
	slow    bool              // what is prepared is there in the next turn alone
	late    func()            // takes it
}

func newOwner(t *testing.T) *owner {
	o := &owner{
		t:     t,
		state: projection.NewShard(0),
		now:   events.MillisOf(time.Date(2027, 3, 1, 9, 30, 0, 0, time.UTC)),
		zones: time.LoadLocation,
	}
	o.takeOver()
	return o
}

// takeOver gives the shard to another owner.
func (o *owner) takeOver() {
	o.Extension = schedules.AtOwner("n1", o.zones)(o.state)
	o.Served()
}

// turn takes a turn in which something is asked.
func (o *owner) turn(asked ...command.Command) (answers []command.Answer) {
	o.t.Helper()
	o.MakeDue(o.now)
	if o.late != nil {
		o.late()
		o.late = nil
	}
	if work := o.Prepare(o.now); work != nil {
		if o.late = work(o.t.Context()); !o.slow {
			o.late()
			o.late = nil
		}
	}
	o.entry.Reset(events.Entry{
		Number: o.state.Number + 1,
		Owner:  "n1-s",
		Time:   o.now,
		Prev:   o.state.Hash,
	})
	d := &command.Decider{
		State: o.state,
		Entry: &o.entry,
		Now:   o.now,
		Wall:  o.now,
		Room:  o.room,

		Members: o.members,
		Note: func(_ *projection.Task, ev *events.Event) {
			o.Note(ev)
			o.told = append(o.told, *ev)
		},
	}
	for _, c := range asked {
		answers = append(answers, d.Decide(c))
	}
	o.Decide(d, command.Budget{Items: 64, Over: func() bool { return false }})
	if d.Err != nil {
		o.t.Fatal(d.Err)
	}
	if len(o.entry.Entry.Events) > 0 {
		if _, err := o.entry.Seal(); err != nil {
			o.t.Fatal(err)
		}
		o.state.Seal(&o.entry.Entry)
	}
	return answers
}

// rest takes turns until none is due.
func (o *owner) rest() {
	o.t.Helper()
	for range 100 {
		o.turn()
		if due := o.NextDue(); due == 0 || due > o.now {
			return
		}
	}
	o.t.Fatal("a turn is always due")
}

// set sets a schedule of each hour whose next tick is in half an hour.
func (o *owner) set(name, zone string) {
	o.t.Helper()
	o.setTo(name, "0 0 * * * ?", zone, o.now+1_800_000)
}

// setTo sets a schedule of an expression.
func (o *owner) setTo(name, cron, zone string, next events.Millis) {
	o.t.Helper()
	policy, err := task.Policy{}.Complete()
	if err != nil {
		o.t.Fatal(err)
	}
	plan := events.SchedulePlan{
		Cron:     cron,
		Zone:     zone,
		Behavior: "work",
		Overlap:  events.OverlapAllow, // no run ends here
		Policy:   policy,
		Grace:    3_600_000,
		Keep:     10,
	}
	a := o.turn(&schedules.Set{
		Name: name,
		Plan: schedules.EncodePlan(&plan),
		Next: int64(next),
	})
	if a[0].Code != command.AnswerOK {
		o.t.Fatalf("set %s: %+v", name, a[0])
	}
}

// overlap gives a schedule another rule for runs that overlap.
func (o *owner) overlap(name string, overlap events.Overlap) {
	o.t.Helper()
	s := fold.Of(o.state).Schedule(name)
	plan := s.Plan
	plan.Overlap = overlap
	a := o.turn(&schedules.Set{
		Name: name,
		Plan: schedules.EncodePlan(&plan),
		Next: int64(s.Next),
	})
	if a[0].Code != command.AnswerOK {
		o.t.Fatalf("set %s: %+v", name, a[0])
	}
}

// ticked returns the decisions of ticks.
func (o *owner) ticked() (all []*events.Ticked) {
	for _, ev := range o.told {
		if b, is := ev.Body.(*events.Ticked); is {
			all = append(all, b)
		}
	}
	return all
}

// why asks why a schedule decides nothing.
func (o *owner) why(name string) string {
	o.t.Helper()
	found, is := o.Answer(&schedules.Get{Name: name}, o.now, command.Budget{Items: 64, Over: func() bool { return false }})
	if !is {
		o.t.Fatal("no answer")
	}
	return fmt.Sprintf("%q", found.Answer().Data)
}

func TestAtOwner_ATickIsDecidedInTheTurnInWhichItIsDue(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	o.rest()
	if due := o.NextDue(); due != o.now+1_800_000 {
		t.Fatalf("due at %d, want %d", due, o.now+1_800_000)
	}
	o.now += 1_800_000
	o.turn() // what it needs was found before
	ticked := o.ticked()
	if len(ticked) != 1 || ticked[0].Decision != events.TickCreated || ticked[0].From != o.now {
		t.Fatalf("decisions %+v", ticked)
	}
	if run := o.state.Task(ticked[0].Run); run == nil || run.Created.Entry() != o.state.Number {
		t.Errorf("run %+v", run)
	}
	if o.rest(); len(o.ticked()) != 1 {
		t.Errorf("decisions %+v", o.ticked())
	}
}

// Whoever takes the shard over decides from what the journal has, at once when a tick is due.
func TestAtOwner_AnotherOwnerGoesOn(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	o.now += 1_900_000
	o.takeOver()
	o.rest()
	if ticked := o.ticked(); len(ticked) != 1 || ticked[0].Decision != events.TickCreated || ticked[0].From != o.now-100_000 {
		t.Errorf("decisions %+v", ticked)
	}
	o.takeOver()
	if o.rest(); len(o.ticked()) != 1 {
		t.Errorf("decisions %+v", o.ticked())
	}
}

// A tick that was found by other data of the time zone is corrected before it is due, once an hour at most.
func TestAtOwner_CorrectsATickOfOtherZoneData(t *testing.T) {
	o := newOwner(t)
	o.set("daily", "UTC")
	s := fold.Of(o.state).Schedule("daily")
	plan, found := s.Plan, s.Next
	plan.Cron = "0 0 5 * * ?"
	// elsewhere sets the schedule as a node does by whose data the clocks show five in half an hour.
	elsewhere := func(keep uint32) {
		plan.Keep = keep
		a := o.turn(&schedules.Set{
			Name:   "daily",
			Plan:   schedules.EncodePlan(&plan),
			Next:   int64(found),
			Offset: -4*3600 - 1800,
		})
		if a[0].Code != command.AnswerOK {
			t.Fatalf("set: %+v", a[0])
		}
		o.rest()
		o.takeOver()
		o.rest()
	}
	elsewhere(1)
	want := events.MillisOf(time.Date(2027, 3, 2, 5, 0, 0, 0, time.UTC))
	ticked := o.ticked()
	if len(ticked) != 1 || ticked[0].Decision != events.TickCorrected || ticked[0].Next != want {
		t.Fatalf("decisions %+v", ticked)
	}
	o.takeOver()
	if o.rest(); len(o.ticked()) != 1 {
		t.Errorf("decisions %+v", o.ticked())
	}
	plan.Cron = "0 0 5 * * ? *" // ticks that were found anew
	elsewhere(2)
	if len(o.ticked()) != 1 {
		t.Errorf("another one within an hour: %+v", o.ticked())
	}
}

// An owner finds ticks by the data of its own node, and decides no date and time again that clocks have shown.
func TestAtOwner_FindsTicksByTheDataOfItsNode(t *testing.T) {
	o := newOwner(t)
	at := func(hour int) events.Millis { return events.MillisOf(time.Date(2027, 3, 1, hour, 0, 0, 0, time.UTC)) }
	o.setTo("daily", "0 0 11 * * ?", "Europe/Berlin", at(10))
	o.zones = func(name string) (*time.Location, error) { return time.FixedZone(name, 7200), nil }
	o.takeOver()
	o.rest()
	ticked := o.ticked()
	if len(ticked) != 1 || ticked[0].Decision != events.TickCorrected || ticked[0].NextOffset != 7200 ||
		ticked[0].Next == at(10) {
		t.Fatalf("decisions %+v", ticked)
	}
	o.now = ticked[0].Next
	o.rest()
	if ticked = o.ticked(); len(ticked) != 2 || ticked[1].Decision != events.TickCreated {
		t.Errorf("decisions %+v", ticked)
	}
}

// A date and time that clocks have shown by the data of whoever found a tick does not come again by those of whoever
// decides it, however late.
func TestAtOwner_DecidesNoTimeOfDayTwiceByOtherData(t *testing.T) {
	at := func(day, hour int) events.Millis {
		return events.MillisOf(time.Date(2027, 3, day, hour, 0, 0, 0, time.UTC))
	}
	for name, late := range map[string]events.Millis{"at once": 0, "after the hour": 3_600_000 + 60_000} {
		o := newOwner(t)
		o.setTo("daily", "0 0 10 * * ?", "Europe/London", at(1, 10))
		o.now = at(1, 10) + late
		o.zones = func(name string) (*time.Location, error) { return time.FixedZone(name, -3600), nil }
		o.takeOver()
		o.rest()
		o.takeOver()
		o.rest()
		o.now = at(2, 9)
		o.rest()
		ticked := o.ticked()
		if len(ticked) != 1 || ticked[0].From != at(1, 10) || ticked[0].Next != at(2, 11) || ticked[0].ToOffset != 0 {
			t.Errorf("%s: decisions %+v", name, ticked)
		}
	}
}

// A schedule that fires more often than its owner takes turns is decided all the same.
func TestAtOwner_DecidesTicksThatComeFasterThanTurns(t *testing.T) {
	o := newOwner(t)
	o.slow = true
	o.setTo("often", "* * * * * ?", "UTC", o.now+1000)
	for range 20 {
		o.now += 2500
		o.turn()
	}
	ticked := o.ticked()
	if len(ticked) < 5 || ticked[len(ticked)-1].To < o.now-10_000 {
		t.Errorf("%d decisions until %d: %+v", len(ticked), o.now, ticked)
	}
}

// While nothing is admitted no tick is decided, a question says why, and the tick has its run once there is room.
func TestAtOwner_DecidesNothingWhileThereIsNoRoom(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	o.rest()
	o.now += 1_800_000
	o.room.Refusal = "the store is almost full"
	o.turn()
	if len(o.ticked()) != 0 || !strings.Contains(o.why("hourly"), "almost full") {
		t.Errorf("decisions %+v, why %s", o.ticked(), o.why("hourly"))
	}
	due := o.NextDue()
	if due <= o.now {
		t.Fatalf("due at %d: the owner is busy with it", due)
	}
	o.now, o.room.Refusal = due, ""
	if o.rest(); len(o.ticked()) != 1 {
		t.Errorf("decisions %+v", o.ticked())
	}
}

// An owner without the data of a time zone decides no tick of it, records nothing, and names its node.
func TestAtOwner_NamesItsNodeWhereTheZoneIsNotKnown(t *testing.T) {
	o := newOwner(t)
	o.set("lost", "Atlantis/Poseidonis")
	o.rest()
	o.now += 1_800_000
	o.rest()
	if len(o.ticked()) != 0 {
		t.Errorf("decisions %+v", o.ticked())
	}
	if why := o.why("lost"); !strings.Contains(why, "n1") || !strings.Contains(why, "Atlantis/Poseidonis") {
		t.Errorf("why %s", why)
	}
}

// A thousand schedules of one tick are decided within the budgets of turns, each once.
func TestAtOwner_AThousandSchedulesOnOneTick(t *testing.T) {
	o := newOwner(t)
	for i := range 1000 {
		o.set(fmt.Sprintf("s%d", i), "UTC")
	}
	o.rest()
	o.now += 1_800_000
	most := 0
	for range 100 {
		before := len(o.ticked())
		o.turn()
		most = max(most, len(o.ticked())-before)
		if due := o.NextDue(); due > o.now+1 {
			break
		}
	}
	if n := len(o.ticked()); n != 1000 || most > 32 {
		t.Errorf("%d decisions, up to %d in a turn", n, most)
	}
}

// Whoever has judged one definition makes no run of another.
func TestRunAndBackfill_OfAnotherVersionAreRefused(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	seen := uint64(fold.Of(o.state).Schedule("hourly").Set)
	o.overlap("hourly", events.OverlapForbid)
	run := &schedules.Run{
		Name: "hourly",
		ID:   "hourly/run:x",
		Seen: seen,
	}
	fill := &schedules.Backfill{
		Name:  "hourly",
		From:  int64(o.now - 7_200_000),
		To:    int64(o.now - 3_600_000),
		Ticks: 2,
		Seen:  seen,
	}
	for _, a := range o.turn(run, fill) {
		if a.Code != command.AnswerChanged {
			t.Errorf("%+v", a)
		}
	}
	run.Seen = uint64(fold.Of(o.state).Schedule("hourly").Set)
	fill.Seen = run.Seen
	for _, a := range o.turn(run, fill) {
		if a.Code != command.AnswerOK {
			t.Errorf("%+v", a)
		}
	}
	run.Seen = seen // a repetition of what was done
	if a := o.turn(run); a[0].Code != command.AnswerOK {
		t.Errorf("%+v", a)
	}
}

// Whoever has seen none makes one, and changes none that has come in between.
func TestSet_OfAnAbsentScheduleChangesNone(t *testing.T) {
	o := newOwner(t)
	o.set("there", "UTC")
	s := fold.Of(o.state).Schedule("there")
	for name, want := range map[string]command.AnswerCode{"there": command.AnswerChanged, "new": command.AnswerOK} {
		plan := s.Plan
		plan.Keep = 7
		a := o.turn(&schedules.Set{
			Name: name,
			Plan: schedules.EncodePlan(&plan),
			Next: int64(s.Next),
			Seen: uint64(schedule.Absent),
		})
		if a[0].Code != want {
			t.Errorf("%s: %+v, want code %d", name, a[0], want)
		}
	}
}

// A change that leaves the ticks as they are leaves the next one, whatever data of the zone its sender has, also where
// that is the last one and due.
func TestSet_OfTheSameTicksKeepsTheNextOne(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	next := fold.Of(o.state).Schedule("hourly").Next
	for keep, sent := range []events.Millis{next - 60_000, next + 60_000, 0} {
		plan := fold.Of(o.state).Schedule("hourly").Plan
		plan.Keep = uint32(20 + keep)
		a := o.turn(&schedules.Set{
			Name:   "hourly",
			Plan:   schedules.EncodePlan(&plan),
			Next:   int64(sent),
			Offset: 60,
		})
		if s := fold.Of(o.state).Schedule("hourly"); a[0].Code != command.AnswerOK || s.Next != next || s.NextOffset != 0 {
			t.Errorf("next %d sent: %+v, next %d, offset %d", sent, a[0], s.Next, s.NextOffset)
		}
	}
}

// A shard has a bound for its schedules, which a change of one does not meet.
func TestSet_OfMoreSchedulesThanAShardHoldsIsRefused(t *testing.T) {
	o := newOwner(t)
	for i := range fold.MaxSchedules {
		o.set(fmt.Sprintf("s%d", i), "UTC")
	}
	s := fold.Of(o.state).Schedule("s7")
	plan := s.Plan
	plan.Keep++
	change := schedules.Set{Name: "s7", Plan: schedules.EncodePlan(&plan), Next: int64(s.Next)}
	another := change
	another.Name = "another"
	a := o.turn(&change, &another)
	if a[0].Code != command.AnswerOK || a[1].Code != command.AnswerOverload {
		t.Errorf("%+v", a)
	}
}

// A definition from code counts once: what came after it stands, also a delete, until the code changes.
func TestSet_ADefinitionInCodeCountsOnce(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	s := fold.Of(o.state).Schedule("hourly")
	fromCode := func(code string, keep uint32) bool {
		t.Helper()
		plan := s.Plan
		plan.Keep = keep
		a := o.turn(&schedules.Set{
			Name: "hourly",
			Plan: schedules.EncodePlan(&plan),
			Next: int64(o.now + 1_800_000),
			Code: code,
		})
		if a[0].Code != command.AnswerOK {
			t.Fatalf("%+v", a[0])
		}
		var set struct {
			Version uint64
			Changed bool
		}
		if err := message.Read(a[0].Data, 1000, &set); err != nil {
			t.Fatal(err)
		}
		return set.Changed
	}
	if !fromCode("v1", 11) || fromCode("v1", 12) || !fromCode("v2", 12) || fromCode("v1", 11) {
		t.Error("a definition from code counts twice, or not at all")
	}
	o.turn(&schedules.Steer{Name: "hourly", Verb: int64(schedules.Delete)})
	if fromCode("v2", 12) || fold.Of(o.state).Schedule("hourly") != nil {
		t.Error("a deleted schedule comes back by its old code")
	}
	if !fromCode("v3", 13) {
		t.Error("new code does not count after a delete")
	}
}
