package check_test

import (
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

var (
	ada = events.Caller{Principal: "ada"} // whose client asks
	eve = events.Caller{Principal: "eve", RequestID: "r-1", Traceparent: "00-1"}
)

// terms returns the terms of a submit with a priority.
func (b *builder) terms(priority int64) *events.Terms {
	return &events.Terms{Policy: b.created().Policy, Priority: priority}
}

func textOf(t *events.Terms) string { return history.TermsOf(&t.Policy, t.Priority) }

// joins acknowledges a submit that joins a task under a request key, with what is recorded of it.
func (b *builder) joins(id, request string, priority int64, recorded ...events.Body) *history.Operation {
	if len(recorded) > 0 {
		b.event = func(ev *events.Event) { ev.RequestID = request }
	}
	o := b.join2(id, false, recorded...)
	o.Request, o.Terms = request, textOf(b.terms(priority))
	return o
}

// reads acknowledges that the settings were read.
func (b *builder) reads(paused ...history.PausedBehavior) *history.Operation {
	return b.op(history.Operation{Verb: history.Settings, Task: string(events.Settings), Paused: history.PausedText(paused)}, nil)
}

func TestAll_KnowsCallersTermsAndRequestsThatJoin(t *testing.T) {
	b := newBuilder(t)
	b.caller = eve
	b.submit("a").Caller = eve
	due := b.now - 1
	b.caller = eve
	b.joins("a", "k", 2, &events.Joined{Terms: b.terms(2)}).Caller = eve
	b.joins("a", "", 2).Caller = ada
	b.joins("a", "l", 0, &events.Joined{Terms: b.terms(0)})
	o := b.tell(history.Get, "a", "")
	o.Terms, o.Substatus, o.Since, o.Looked = textOf(b.terms(0)), "ready", due, b.now
	b.start("a", "n-1")
	b.succeed("a")
	b.joins("a", "m", 7, &events.Joined{}) // it has ended: no terms change
	b.sound()
}

func TestAll_KnowsTheSettingsOfEveryMoment(t *testing.T) {
	b := newBuilder(t)
	b.reads()
	b.pauses("work")
	work := history.PausedBehavior{Behavior: "work", By: "ada", Since: b.now}
	b.reads(work)
	b.caller = eve
	b.set(events.Settings.Shard(shards), &events.Paused{Behavior: "sleep", Reason: "a deployment"})
	sleep := history.PausedBehavior{Behavior: "sleep", Reason: "a deployment", By: "eve", Since: b.now}
	b.run.Operations[len(b.run.Operations)-1].Caller = eve
	b.reads(sleep, work)
	b.op(history.Operation{Verb: history.Pause, Task: string(events.Settings), Behavior: "work", Reason: "it is paused"}, nil)
	b.unpause("work")
	b.op(history.Operation{Verb: history.Unpause, Task: string(events.Settings), Behavior: "work"}, nil)
	b.reads(sleep)
	b.sound()
}

// Who finds no room records nothing, and takes what he asked for back.
func TestAll_ExcusesJoinsWhileTheStoreMayBeFull(t *testing.T) {
	fills := map[string]func(b *builder){
		"a fault": func(b *builder) {
			b.run.Faults = []history.Fault{{Kind: history.FullKinds[0], From: b.tick(), Until: b.tick(), Proof: "refused"}}
		},
		"the load": func(b *builder) { b.run.Info.Filled = []history.Span{{From: b.tick(), Until: b.tick()}} },
	}
	for by, fill := range fills {
		for after, want := range map[time.Duration]int{time.Second: 0, time.Minute: 1} {
			b := newBuilder(t)
			fill(b)
			b.started()
			b.clock += int64(after)
			b.joins("a", "k", 2)
			b.succeed("a")
			if found := check.All(b.finish()); len(found) != want {
				t.Errorf("%s after %s has filled the store: found %v", after, by, found)
			}
		}
	}
}

// shown has a read show a task that has ended.
func shown(change func(o *history.Operation)) func(b *builder) {
	return func(b *builder) {
		b.done("a")
		ended := b.now
		o := b.tell(history.Get, "a", "")
		o.Terms, o.Substatus, o.Since, o.Looked = textOf(b.terms(0)), "final", ended, b.now
		change(o)
	}
}

var callers = []planted{
	{"an event names another caller", "7 acknowledged", func(b *builder) {
		b.caller = eve
		b.submit("a").Caller = ada
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"an event names no caller", "7 acknowledged", aTask, func(r *history.Run) { r.Operations[0].Caller = eve }},
	{"an attempt names a caller", "7 acknowledged", func(b *builder) {
		b.submit("a")
		b.caller = eve
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"a delete is told of another caller", "7 acknowledged", func(b *builder) {
		b.done("a")
		b.op(history.Operation{Verb: history.Delete, Task: "a", Answer: history.Unknown, Caller: ada}, nil)
		b.command(history.Delete, "a", &events.Deleted{}).Caller = eve
	}, nil},
	{"what breaks a limit is acknowledged", "7 acknowledged", aTask, func(r *history.Run) { r.Operations[0].Forbidden = "priority" }},
	{"joined from nowhere", "7 acknowledged", func(b *builder) {
		b.started()
		b.add("a", &events.Joined{}, &events.Joined{})
		b.succeed("a")
	}, nil},
	{"a task of a reserved id", "2 legal", func(b *builder) { b.done("store:a/1") }, nil},
	{"a request is refused for another one that nobody made", "11 once", func(b *builder) {
		b.asked("a", "k", "1")
		b.op(history.Operation{Verb: history.Submit, Task: "a", By: "ada work", Request: "k", Body: "1", Answer: history.Refused, OtherRequest: true}, nil)
	}, nil},
}

var terms = []planted{
	{"a join without its terms", "linear", func(b *builder) {
		b.started()
		b.joins("a", "", 2)
		b.succeed("a")
	}, nil},
	{"a join without its request", "linear", func(b *builder) {
		b.started()
		b.joins("a", "k", 0)
		b.succeed("a")
	}, nil},
	{"a submit makes a task of other terms", "linear", aTask, func(r *history.Run) { r.Operations[0].Terms = "other" }},
	{"a read shows other terms", "linear", shown(func(o *history.Operation) { o.Terms = "other" }), nil},
	{"a read shows another word", "linear", shown(func(o *history.Operation) { o.Substatus = "ready" }), nil},
	{"a read shows a word since another time", "linear", shown(func(o *history.Operation) { o.Since-- }), nil},
	{"other terms are served", "3 served", aTask, func(r *history.Run) { r.Served[0].Terms = "other" }},
	{"another word is served", "3 served", aTask, func(r *history.Run) {
		r.Served[0].Whole, r.Served[0].LastNode, r.Served[0].Substatus = true, "n-1", "ready"
	}},
	{"a word is served since another time", "3 served", aTask, func(r *history.Run) {
		r.Served[0].Substatus, r.Served[0].Since = "final", 1
	}},
}

var settings = []planted{
	{"a pause from nowhere", "7 acknowledged", func(b *builder) { b.pauses("work") }, func(r *history.Run) { r.Operations = nil }},
	{"a pause for another reason", "7 acknowledged", func(b *builder) { b.pauses("work") }, func(r *history.Run) { r.Operations[0].Reason = "another" }},
	{"a pause of another caller", "7 acknowledged", func(b *builder) { b.pauses("work") }, func(r *history.Run) { r.Operations[0].Caller = eve }},
	{"settings that never were", "3 served", func(b *builder) {
		b.pauses("work")
		b.reads(history.PausedBehavior{Behavior: "work", By: "eve", Since: b.now})
	}, nil},
	{"settings of earlier", "linear", func(b *builder) {
		b.pauses("work")
		b.reads()
	}, nil},
	{"settings of later", "linear", func(b *builder) {
		b.pauses("work")
		at := b.now
		b.unpause("work")
		b.reads()
		b.reads(history.PausedBehavior{Behavior: "work", By: "ada", Since: at})
	}, nil},
	{"a pause is lost", "linear", func(b *builder) {
		b.op(history.Operation{Verb: history.Pause, Task: string(events.Settings), Behavior: "work"}, nil)
	}, nil},
	{"the end of a pause is lost", "linear", func(b *builder) {
		b.pauses("work")
		b.op(history.Operation{Verb: history.Unpause, Task: string(events.Settings), Behavior: "work"}, nil)
	}, nil},
}
