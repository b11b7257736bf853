package schedules_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/schedules"
	"taskledger/events"
	"taskledger/internal/runid"
	"taskledger/internal/wire"
	fold "taskledger/projection/schedules"
	"taskledger/store"
	"taskledger/task"
)

// setPlan sets a schedule to the plan that another one has, with a change.
func (o *owner) setPlan(name, of string, next events.Millis, change func(*events.SchedulePlan)) command.Answer {
	o.t.Helper()
	plan := fold.Of(o.state).Schedule(of).Plan
	change(&plan)
	return o.turn(&schedules.Set{
		Name: name,
		Plan: schedules.EncodePlan(&plan),
		Next: int64(next),
	})[0]
}

func withoutCron(p *events.SchedulePlan) { p.Cron, p.Overlap = "", events.OverlapForbid }

// A schedule without cron has no tick, whatever time passes, and runs when somebody asks.
func TestAtOwner_WithoutCronASchedulesRunsByHandAlone(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	if a := o.setPlan("idle", "hourly", o.now+1, withoutCron); a.Code != command.AnswerInvalid {
		t.Errorf("with a tick that comes: %+v", a)
	}
	if a := o.setPlan("idle", "hourly", 0, withoutCron); a.Code != command.AnswerOK {
		t.Fatalf("%+v", a)
	}
	o.turn(&schedules.Steer{Name: "hourly", Verb: int64(schedules.Delete)})
	o.takeOver()
	o.rest()
	o.now += 100 * 3_600_000
	if due := o.NextDue(); due != 0 {
		t.Errorf("due at %d", due)
	}
	o.rest()
	explains := func(why task.Reason, text string) {
		t.Helper()
		if e, is := o.ExplainRecord("idle/schedule:"); !is || e.Why != why || !strings.Contains(e.Text, text) {
			t.Errorf("%t, %+v, want %s, %s", is, e, why, text)
		}
	}
	explains(task.WhyByHand, "it never runs by itself")
	a := o.turn(&schedules.Run{Name: "idle", ID: "idle/run:a", Priority: 300}, &schedules.Run{Name: "idle", ID: "idle/run:b"})
	if a[0].Code != command.AnswerOK || a[0].Joined || !a[1].Joined || string(a[1].Data) != "idle/run:a" {
		t.Errorf("%+v", a)
	}
	if run := o.state.Task("idle/run:a"); run == nil || run.Priority != 300 {
		t.Errorf("%+v", run)
	}
	explains(task.WhyRunning, "idle/run:a")
	fill := &schedules.Backfill{Name: "idle", From: 1, To: 1, Ticks: 1}
	if a := o.turn(fill); a[0].Code != command.AnswerState || !strings.Contains(a[0].Text, "no ticks") {
		t.Errorf("backfill: %+v", a)
	}
	if len(o.ticked()) != 0 {
		t.Errorf("decisions %+v", o.ticked())
	}
}

// A schedule that loses its expression loses its ticks, and has them again with one: those after what is decided.
func TestSet_TakesTicksAwayAndGivesThemBack(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	o.now += 1_800_000
	o.rest()
	decided := o.ticked()[0].From
	if a := o.setPlan("hourly", "hourly", 0, withoutCron); a.Code != command.AnswerOK {
		t.Fatalf("%+v", a)
	}
	o.now += 3 * 3_600_000
	if o.rest(); len(o.ticked()) != 1 {
		t.Fatalf("decisions %+v", o.ticked())
	}
	cron := func(p *events.SchedulePlan) { p.Cron, p.Overlap = "0 0 * * * ?", events.OverlapAllow }
	if a := o.setPlan("hourly", "hourly", decided, cron); a.Code != command.AnswerChanged {
		t.Errorf("from a tick that was decided: %+v", a)
	}
	if a := o.setPlan("hourly", "hourly", o.now+3_600_000, cron); a.Code != command.AnswerOK {
		t.Fatalf("%+v", a)
	}
	o.now += 3_600_000
	if o.rest(); len(o.ticked()) != 2 || o.ticked()[1].From != o.now {
		t.Errorf("decisions %+v", o.ticked())
	}
}

func byUUID(p *events.SchedulePlan) { p.Names = events.NamesByUUID }

// Runs are named by the rule of their schedule, and a repetition names the same. A schedule keeps the rule when
// somebody sets it who does not know of it.
func TestAtOwner_NamesRunsByUUIDs(t *testing.T) {
	o := newOwner(t)
	o.set("s", "UTC")
	tick := o.now + 1_800_000
	if a := o.setPlan("s", "s", tick, byUUID); a.Code != command.AnswerOK {
		t.Fatalf("%+v", a)
	}
	origin := func(p *events.SchedulePlan) { p.Names, p.Keep = events.NamesByOrigin, 9 }
	if a := o.setPlan("s", "s", tick, origin); a.Code != command.AnswerOK {
		t.Fatalf("%+v", a)
	}
	if p := fold.Of(o.state).Schedule("s").Plan; p.Names != events.NamesByUUID || p.Keep != 9 {
		t.Fatalf("%+v", p)
	}
	o.now = tick
	o.rest()
	run := o.state.Task(runid.OfTick("s", tick))
	if run == nil || run.RunOf() != events.RunOfTick || o.ticked()[0].Run != run.ID {
		t.Errorf("decisions %+v, run %+v", o.ticked(), run)
	}
	hand := runid.OfHand("s", "k")
	for again := range 2 {
		a := o.turn(&schedules.Run{Name: "s", ID: "s/run:k"})[0]
		repeated := again > 0
		if a.Code != command.AnswerOK || string(a.Data) != string(hand) || a.Joined != repeated || a.Repeated != repeated {
			t.Errorf("%+v, want %s", a, hand)
		}
	}
	o.now++
	o.turn(&schedules.Backfill{
		Name:  "s",
		From:  int64(tick),
		To:    int64(tick),
		Ticks: 1,
	})
	o.rest()
	fill := o.state.Task(runid.OfFill("s", tick, 0))
	if fill == nil || fill.RunOf() != events.RunOfFill || o.state.Task(hand).RunOf() != events.RunByHand {
		t.Errorf("run of the backfill %+v", fill)
	}
}

// A task that somebody has made under the id of a run is none, and neither are shared.
func TestRun_SharesNoTaskOfAnother(t *testing.T) {
	o := newOwner(t)
	o.set("s", "UTC")
	o.setPlan("s", "s", o.now+1_800_000, byUUID)
	policy, err := task.Policy{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	submit := func(id events.TaskID) command.Answer {
		return o.turn(&command.Submit{Task: id, Behavior: "work", Policy: policy})[0]
	}
	if a := submit(runid.OfHand("s", "k")); a.Code != command.AnswerOK {
		t.Fatalf("%+v", a)
	}
	if a := o.turn(&schedules.Run{Name: "s", ID: "s/run:k"})[0]; a.Code != command.AnswerState {
		t.Errorf("%+v", a)
	}
	if n := fold.Of(o.state).Schedule("s").Active(); n != 0 {
		t.Errorf("%d runs", n)
	}
	o.turn(&schedules.Run{Name: "s", ID: "s/run:own"})
	if a := submit(runid.OfHand("s", "own")); a.Code != command.AnswerInvalid {
		t.Errorf("a submit shares a run: %+v", a)
	}
}

// What nodes of before cannot read is refused by the name of one that is there, and nothing else is.
func TestSet_OfALaterPlanWaitsForTheUpgradeOfEveryNode(t *testing.T) {
	o := newOwner(t)
	old := store.NodeInfo{ID: "old", Name: "old", Reads: store.Reads{Kind: events.KindScheduleEnded}}
	o.members = &store.Membership{Nodes: map[string]store.NodeInfo{"old": old}}
	o.set("s", "UTC")
	for what, change := range map[string]func(*events.SchedulePlan){"UUIDs": byUUID, "no cron": withoutCron} {
		next := o.now + 1_800_000
		if what == "no cron" {
			next = 0
		}
		if a := o.setPlan("s", "s", next, change); a.Code != command.AnswerState || !strings.Contains(a.Text, "node old") {
			t.Errorf("%s: %+v", what, a)
		}
	}
	if seq := fold.Of(o.state).Schedule("s").Seq; seq != 1 {
		t.Errorf("%d events, want 1", seq)
	}
}

// An owner of before reads a run that has neither a priority of its own nor a key.
func TestRun_WithoutAPriorityAndAKeyIsWhatItWas(t *testing.T) {
	for run, fields := range map[schedules.Run]int{{}: 3, {Priority: 300}: 4, {Keyed: true}: 5} {
		run.Name, run.ID = "s", "s/run:k"
		var w wire.Writer
		command.Encode(&w, &run)
		r := wire.NewReader(w.B)
		r.Uint()
		if n := wire.NewReader(r.View()).Array(); n != fields {
			t.Errorf("%+v: %d fields, want %d", run, n, fields)
		}
	}
	for _, priority := range []int64{-1, events.MaxPriority + 1} {
		if err := (&schedules.Run{Name: "s", ID: "s/run:k", Priority: priority}).Limits(); err == nil {
			t.Errorf("priority %d is taken", priority)
		}
	}
}

// A request with a key that shares a run shares it again after its end, as long as the run is there; one without a key
// leaves nothing.
func TestRun_OfAKeyIsSharedAgainAfterTheEnd(t *testing.T) {
	o := newOwner(t)
	o.set("s", "UTC")
	o.setPlan("s", "s", 0, withoutCron)
	ask := func(of string, keyed bool) (id string, joined bool) {
		t.Helper()
		a := o.turn(&schedules.Run{Name: "s", ID: "s/run:" + of, Keyed: keyed})[0]
		if a.Code != command.AnswerOK || a.Repeated {
			t.Fatalf("%+v", a)
		}
		return string(a.Data), a.Joined
	}
	ask("first", false)
	before := o.state.Number
	for _, request := range []struct {
		of      string
		keyed   bool
		entries uint64
	}{{"none", false, 0}, {"key", true, 1}, {"key", true, 1}, {"other", true, 2}} {
		id, joined := ask(request.of, request.keyed)
		if id != "s/run:first" || !joined || o.state.Number != before+request.entries {
			t.Errorf("%+v: run %s, joined %t, after %d entries", request, id, joined, o.state.Number-before)
		}
	}
	o.turn(&command.Operate{Task: "s/run:first", Do: command.DoCancel})
	for range 2 {
		if id, joined := ask("key", true); id != "s/run:first" || !joined {
			t.Errorf("after the end: run %s, joined %t", id, joined)
		}
	}
	if id, joined := ask("none", false); id != "s/run:none" || joined {
		t.Errorf("without a key: run %s, joined %t", id, joined)
	}
	if id, _ := ask("other", true); id != "s/run:first" {
		t.Errorf("while another run has not ended: run %s", id)
	}
	o.turn(&command.Operate{Task: "s/run:first", Do: command.DoDelete})
	if id, joined := ask("key", true); id != "s/run:none" || !joined {
		t.Errorf("of a run that is gone: run %s, joined %t", id, joined)
	}
}
