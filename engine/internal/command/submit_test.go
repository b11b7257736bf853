package command_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

func TestSubmit_OnAnExistingTask(t *testing.T) {
	now, later := 0*time.Second, time.Hour
	for _, row := range []struct {
		at       situation
		existing events.Existing
		delay    time.Duration
		run      uint32
		events   string
	}{
		{atCreated, events.ReturnRecorded, now, 1, ""},
		{atCreated, events.RunAgain, later, 1, "Joined"},          // another policy: that of the last submit holds
		{atDelayed, events.ReturnRecorded, now, 1, "Rescheduled"}, // of two schedules the earlier one holds
		{atDelayed, events.ReturnRecorded, later, 1, ""},
		{atRunning, events.ReturnRecorded, now, 1, ""},
		{atRunning, events.RunAgain, now, 1, "Joined"},
		{atRerun, events.ReturnRecorded, now, 2, ""}, // the stored parameters are for the further run
		{atCancelled, events.ReturnRecorded, now, 1, ""},
		{atWaiting, events.RunAgain, now, 1, "Joined"},
		{atSuccess, events.ReturnRecorded, now, 1, ""},
		{atSuccess, events.RunAgain, now, 2, "Rescheduled"},
		{atSuccess, events.RunAgain, later, 2, "Rescheduled"},
		{atSuccessNext, events.ReturnRecorded, now, 2, ""},
		{atSuccessNext, events.RunAgain, now, 2, "Joined"},
		{atFailure, events.ReturnRecorded, now, 1, ""},
		{atFailure, events.RunAgain, now, 2, "Rescheduled"},
		{atFailureRetry, events.ReturnRecorded, now, 1, ""},
		{atFailureRetry, events.RunAgain, now, 1, "Joined"},
	} {
		l := ledgerAt(t, row.at)
		c := l.ask(events.Policy{Existing: row.existing})
		c.NotBefore, c.Params = l.now.Add(row.delay), events.JSON([]byte("2"))
		created, params := l.task().Created, slices.Clone(l.task().Params)
		a, kinds := l.decide(c)
		if a.Code != command.AnswerOK || !a.Joined || a.Life != created || a.Run != row.run {
			t.Errorf("%s, policy %d: answer %+v, want to join run %d", row.at, row.existing, a, row.run)
		}
		if got := strings.Join(kinds, " "); got != row.events {
			t.Errorf("%s, policy %d: events %q, want %q", row.at, row.existing, got, row.events)
		}
		if row.events == "Rescheduled" && l.task().Due != c.NotBefore {
			t.Errorf("%s: due at %d, want %d", row.at, l.task().Due, c.NotBefore)
		}
		if row.events != "" && l.task().Kind.Policy != c.Policy {
			t.Errorf("%s: the policy is %+v, want that of the last submit", row.at, l.task().Kind.Policy)
		}
		if !slices.Equal(params, l.task().Params) {
			t.Errorf("%s: the stored parameters were replaced", row.at)
		}
	}
}

// A behavior may choose that whoever submits need not wait for the next run as it is scheduled.
func TestSubmit_ThatRunsNowMakesTheNextRunDue(t *testing.T) {
	for at, want := range map[situation]string{atSuccessNext: "Rescheduled", atFailureRetry: "Rescheduled", atDelayed: "Rescheduled",
		atCreated: "", atRunning: "", atWaiting: "", atSuccess: "", atFailure: ""} {
		for _, in := range []time.Duration{0, time.Second, time.Hour} {
			l := ledgerAt(t, at)
			c, before, events := l.ask(events.Policy{}), l.task().Due, want
			c.RunNow, c.NotBefore = true, l.now.Add(in)
			plain := *c
			plain.RunNow = false
			a, kinds := l.decide(c)
			if in == time.Hour {
				events = "" // the earlier one holds
			}
			if got := strings.Join(kinds, " "); got != events || events != "" && l.task().Due != c.NotBefore || events == "" && l.task().Due != before {
				t.Errorf("%s, in %s: events %q, due at %d; want %q", at, in, got, l.task().Due, events)
			}
			if b, _ := ledgerAt(t, at).decide(&plain); a.Run != b.Run || a.Life != b.Life {
				t.Errorf("%s, in %s: joins run %d, and without it run %d", at, in, a.Run, b.Run)
			}
		}
	}
}

func TestSubmit_ThatMergesIsAskedToAndThenCommits(t *testing.T) {
	for _, row := range []struct {
		at       situation
		existing events.Existing
		run      uint32
		events   string
	}{
		{atCreated, events.ReturnRecorded, 1, "Merged"},
		{atDelayed, events.ReturnRecorded, 1, "Merged Rescheduled"},
		{atRunning, events.ReturnRecorded, 2, "Merged"},
		{atRerun, events.ReturnRecorded, 2, "Merged"},
		{atWaiting, events.ReturnRecorded, 1, "Merged"},
		{atSuccessNext, events.ReturnRecorded, 2, "Merged"},
		{atFailureRetry, events.ReturnRecorded, 1, "Merged"},
		{atSuccess, events.RunAgain, 2, "Merged Rescheduled"},
		{atFailure, events.RunAgain, 2, "Merged Rescheduled"},
	} {
		l := ledgerAt(t, row.at)
		c := l.ask(events.Policy{Existing: row.existing})
		c.Merges = true
		if a, kinds := l.decide(c); a.Code != command.AnswerMerge || kinds != nil {
			t.Errorf("%s: answer %+v with events %v, want to be asked to merge", row.at, a, kinds)
		}
		m := l.merge("3")
		m.Submit.Policy = c.Policy
		a, kinds := l.decide(m)
		if a.Code != command.AnswerOK || a.Run != row.run || a.Life != l.task().Created {
			t.Errorf("%s: merge answered %+v, want run %d", row.at, a, row.run)
		}
		if got := strings.Join(kinds, " "); got != row.events {
			t.Errorf("%s: events %q, want %q", row.at, got, row.events)
		}
	}
	for _, at := range []situation{atSuccess, atFailure} {
		l := ledgerAt(t, at)
		c := l.ask(events.Policy{})
		c.Merges = true
		if a, kinds := l.decide(c); a.Code != command.AnswerOK || a.Run != 1 || kinds != nil {
			t.Errorf("%s: answer %+v with events %v, want the recorded outcome", at, a, kinds)
		}
	}
}

// What the store has no room for: a further live task, and larger parameters of one. What ends tasks, and what
// operators ask, is decided all the same.
func TestRefusalAndLimit_HoldForAllThatSubmitsAdd(t *testing.T) {
	large := events.JSON(fmt.Appendf(nil, "%q", strings.Repeat("x", 500)))
	again := events.Policy{Existing: events.RunAgain}
	submit := func(l *journalDriver) command.Command { return l.ask(again) }
	merge := func(params events.Payload) func(l *journalDriver) command.Command {
		return func(l *journalDriver) command.Command {
			m := &command.Merge{Submit: *l.ask(again), Life: l.task().Created, Seq: l.task().Seq}
			m.Submit.Params = params
			return m
		}
	}
	retry := func(l *journalDriver) command.Command {
		m := merge(large)(l).(*command.Merge)
		m.Operator = true
		return m
	}
	operate := func(do task.Operation) func(l *journalDriver) command.Command {
		return func(*journalDriver) command.Command { return &command.Operate{Task: ledgerTask, Do: do} }
	}
	done := func(how command.Completion) func(l *journalDriver) command.Command {
		return func(l *journalDriver) command.Command { return l.done(how) }
	}
	same := events.JSON([]byte("1"))
	for _, row := range []struct {
		name           string
		at             situation
		command        func(l *journalDriver) command.Command
		refused, large bool // while submits are refused, or the live tasks are at their limit
	}{
		{"submit", atNothing, submit, true, true},
		{"submit", atCreated, submit, false, false},
		{"submit", atRunning, submit, false, false},
		{"submit", atSuccessNext, submit, false, false},
		{"submit", atSuccess, submit, true, true},
		{"submit", atFailure, submit, true, true},
		{"merge of more", atCreated, merge(large), true, true},
		{"merge of more", atRunning, merge(large), true, true},
		{"merge of more", atSuccess, merge(large), true, true},
		{"merge of as much", atRunning, merge(events.JSON([]byte("7"))), true, false},
		{"merge of the same", atRunning, merge(same), false, false},
		{"merge of the same", atFailure, merge(same), true, true},
		{"retry", atFailure, retry, false, false},
		{"retry", atSuccess, operate(command.DoRetry), false, false},
		{"cancel", atCreated, operate(command.DoCancel), false, false},
		{"delete", atSuccess, operate(command.DoDelete), false, false},
		{"suspend", atRunning, operate(command.DoSuspend), false, false},
		{"success", atRerun, done(command.Succeeded), false, false},
		{"failure", atRunning, done(command.Failed), false, false},
		{"release", atRunning, done(command.Released), false, false},
		{"snooze", atRunning, done(command.Snoozed), false, false},
	} {
		for _, mayGo := range []bool{false, true} {
			for cause, refused := range map[string]bool{"refusal": row.refused, "limit": row.large} {
				l := ledgerAt(t, row.at)
				var other command.Answer
				l.entry(func(d *command.Decider) { // so that the limit is reached
					c := l.ask(events.Policy{})
					c.Task = "other"
					other = d.Decide(c)
				})
				cmd := row.command(l)
				var a command.Answer
				kinds := l.entry(func(d *command.Decider) {
					d.ParamsMayGo, d.LiveLimit = mayGo, 50
					if cause == "refusal" {
						d.Refusal, d.LiveLimit = "etcd is full", 0
					}
					a = d.Decide(cmd)
					l.legal(d)
				})
				if is := a.Code == command.AnswerOverload; other.Code != command.AnswerOK || is != refused || is && (kinds != nil || a.Text == "" || a.Number == 0) ||
					!is && a.Code != command.AnswerOK && a.Code != command.AnswerMerge {
					t.Errorf("%s of a task that is %s, %s, params may go: %t: answer %+v with events %v; want it refused: %t", row.name, row.at, cause, mayGo, a, kinds, refused)
				}
			}
		}
	}
}

// A submit is refused when its own bytes would exceed the limit, not only when those of earlier ones do already.
func TestLimit_CountsTheBytesThatASubmitWouldAdd(t *testing.T) {
	const adds = 500
	large := events.JSON(fmt.Appendf(nil, "%q", strings.Repeat("x", adds)))
	for _, mayGo := range []bool{false, true} { // with true, a final task has lost its parameters, and a merge begins another run
		for _, at := range []situation{atNothing, atCreated, atRunning, atSuccess, atFailure} {
			for _, c := range []struct {
				room    int64
				refused bool
			}{{adds / 2, true}, {2 * adds, false}} {
				l := ledgerAt(t, at)
				ask := l.ask(events.Policy{Existing: events.RunAgain})
				ask.Params = large
				var cmd command.Command = ask
				if at != atNothing {
					cmd = &command.Merge{Submit: *ask, Life: l.task().Created, Seq: l.task().Seq}
				}
				var a command.Answer
				kinds := l.entry(func(d *command.Decider) {
					d.ParamsMayGo, d.LiveLimit = mayGo, d.State.LiveBytes()+c.room
					a = d.Decide(cmd)
					l.legal(d)
				})
				if is := a.Code == command.AnswerOverload; is != c.refused || is && kinds != nil || !is && a.Code != command.AnswerOK {
					t.Errorf("%s, room for %d bytes, params may go: %t: answer %+v with events %v; want it refused: %t", at, c.room, mayGo, a, kinds, c.refused)
				}
			}
		}
	}
}

func TestSubmit_RefusesWhatBreaksARule(t *testing.T) {
	for name, spoil := range map[string]func(c *command.Submit){
		"reserved id":   func(c *command.Submit) { c.Task = events.Settings },
		"affinity":      func(c *command.Submit) { c.Task = "store:orders/1" },
		"invalid id":    func(c *command.Submit) { c.Task = "a b" },
		"no id":         func(c *command.Submit) { c.Task = "" },
		"behavior":      func(c *command.Submit) { c.Behavior = "Work" },
		"policy":        func(c *command.Submit) { c.Policy.MaxLost = -1 },
		"params":        func(c *command.Submit) { c.Params = make(events.Payload, events.MaxPayloadBytes+2) },
		"request id":    func(c *command.Submit) { c.RequestID = strings.Repeat("r", events.MaxNameBytes+1) },
		"priority":      func(c *command.Submit) { c.Priority = events.MaxPriority + 1 },
		"low priority":  func(c *command.Submit) { c.Priority = -1 },
		"hostile bytes": func(c *command.Submit) { c.Task = events.TaskID(strings.Repeat("\x00", events.MaxIDBytes)) },
	} {
		for _, merge := range []bool{false, true} {
			l := newJournalDriver(t)
			c := l.ask(events.Policy{})
			spoil(c)
			var cmd command.Command = c
			if merge {
				cmd = &command.Merge{Submit: *c}
			}
			if a, kinds := l.decide(cmd); a.Code != command.AnswerInvalid || kinds != nil || len(a.Text) > 128 || a.Text == "" {
				t.Errorf("%s: answer %+v with events %v, want it refused in a few words", name, a, kinds)
			}
		}
	}
}

func TestSubmit_ReservesTheAffinitiesOfStores(t *testing.T) {
	for id, reserved := range map[events.TaskID]bool{"store:": true, "store:orders": true, "store:/a": true, "store:orders/1": true,
		events.TaskID("store:" + strings.Repeat("x", events.MaxIDBytes)): true,
		"store": false, "stored:a": false, "Store:a": false, "orders/store:1": false, "a:store:b": false} {
		c := newJournalDriver(t).ask(events.Policy{})
		c.Task = id
		invalid, is := errors.AsType[*store.InvalidError](c.Check())
		if is != reserved || is && (invalid.Field != "id" || !strings.Contains(invalid.Problem, "reserved") || len(invalid.Error()) > 128) {
			t.Errorf("%s: %v, want it reserved: %t", id, c.Check(), reserved)
		}
	}
}

func TestSubmit_OfAnotherBehaviorIsRefused(t *testing.T) {
	for _, at := range situations[1:] {
		l := ledgerAt(t, at)
		c := l.ask(events.Policy{Existing: events.RunAgain})
		c.Behavior = "other"
		if a, kinds := l.decide(c); a.Code != command.AnswerState || kinds != nil {
			t.Errorf("%s: answer %+v with events %v, want it refused", at, a, kinds)
		}
	}
}

// Whoever gets the outcome of what has ended long ago gets it again, and nobody another one under the same key.
func TestSubmit_ThatMeetsWhatHasEndedIsRememberedByItsKey(t *testing.T) {
	for _, at := range []situation{atSuccess, atFailure} {
		for _, merges := range []bool{false, true} {
			l := ledgerAt(t, at)
			ask := func(q events.Request, full string) (command.Answer, []string) {
				submit := l.ask(events.Policy{})
				submit.RequestID = q.ID("k")
				var c command.Command = submit
				if merges {
					c = &command.Merge{Submit: *submit, Life: l.task().Created, Seq: l.task().Seq}
				}
				var a command.Answer
				kinds := l.entry(func(d *command.Decider) {
					d.Refusal = full
					a = d.Decide(c)
					l.legal(d)
				})
				return a, kinds
			}
			q := events.Request{Behavior: "work"}
			if a, kinds := ask(q, "etcd is full"); a.Code != command.AnswerOK || a.Run != 1 || a.Repeated || kinds != nil {
				t.Errorf("%s, merges %t: answered %+v with events %v, want nothing recorded where there is no room", at, merges, a, kinds)
			}
			if a, kinds := ask(q, ""); a.Code != command.AnswerOK || a.Run != 1 || a.Repeated || strings.Join(kinds, " ") != "Joined" {
				t.Errorf("%s, merges %t: answered %+v with events %v, want run 1, and the request recorded", at, merges, a, kinds)
			}
			if a, kinds := ask(q, ""); a.Run != 1 || !a.Repeated || kinds != nil {
				t.Errorf("%s, merges %t: answered %+v with events %v, want the same again", at, merges, a, kinds)
			}
			if a, kinds := ask(events.Request{Behavior: "work", Priority: 1}, ""); a.Code != command.AnswerKeyUsed || kinds != nil {
				t.Errorf("%s, merges %t: another request of the key answered %+v with events %v", at, merges, a, kinds)
			}
		}
	}
}

// What other requests made of the task since is none of its business.
func TestSubmit_RepeatedGetsTheRunThatItWasPromised(t *testing.T) {
	l := ledgerAt(t, atSuccess)
	runs := map[string]uint32{}
	for _, request := range []string{"a", "b", "c"} {
		c := l.ask(events.Policy{Existing: events.RunAgain})
		c.RequestID = request
		a, _ := l.decide(c)
		runs[request] = a.Run
		l.start(ledgerTask, "n-1")
		l.decide(l.done(command.Succeeded))
	}
	for request, run := range map[string]uint32{"a": 2, "b": 3, "c": 4} {
		c := l.ask(events.Policy{Existing: events.RunAgain})
		c.RequestID = request
		if a, kinds := l.decide(c); runs[request] != run || a.Run != run || !a.Repeated || a.Number != 0 || kinds != nil {
			t.Errorf("request %s was promised run %d, and repeated it is answered %+v with events %v; want run %d", request, runs[request], a, kinds, run)
		}
	}
}

func TestSubmit_SameRequestJoinsItself(t *testing.T) {
	for _, at := range []situation{atSuccess, atFailure} {
		l := ledgerAt(t, at)
		c := l.ask(events.Policy{Existing: events.RunAgain})
		c.RequestID = "r-1"
		first, kinds := l.decide(c)
		if len(kinds) != 1 || first.Run != 2 {
			t.Fatalf("%s: answer %+v with events %v, want a second run", at, first, kinds)
		}
		l.start(ledgerTask, "n-1")
		l.decide(l.done(command.Succeeded))
		if again, kinds := l.decide(c); kinds != nil || again.Run != 2 || again.Life != first.Life {
			t.Errorf("%s: the same request answered %+v with events %v, want run 2 again", at, again, kinds)
		}
	}
}

// Whatever became of the task, and whether or not the shard takes anything: whoever repeats a request is told of it,
// and another one under its key is refused.
func TestSubmit_TellsARepeatedRequestFromAnotherOfItsKey(t *testing.T) {
	for _, at := range situations[1:] {
		for _, merges := range []bool{false, true} {
			l := ledgerAt(t, at)
			q := events.Request{Behavior: "work", Priority: 1}
			c := l.ask(events.Policy{Existing: events.RunAgain})
			c.RequestID = q.ID("a key")
			first := &command.Merge{Submit: *c, Life: l.task().Created, Seq: l.task().Seq}
			first.Submit.Params = events.JSON([]byte("9"))
			made, kinds := l.decide(first)
			if made.Code != command.AnswerOK || made.Repeated || kinds == nil {
				t.Fatalf("%s: answer %+v with events %v, want it recorded", at, made, kinds)
			}
			another := *c
			q.Priority = 2
			another.RequestID = q.ID("a key")
			for _, row := range []struct {
				submit *command.Submit
				want   command.AnswerCode
			}{{c, command.AnswerOK}, {&another, command.AnswerKeyUsed}} {
				var cmd command.Command = row.submit
				if merges {
					cmd = &command.Merge{Submit: *row.submit, Life: l.task().Created, Seq: l.task().Seq}
				}
				var a command.Answer
				kinds := l.entry(func(d *command.Decider) {
					d.Refusal, d.LiveLimit = "etcd is full", 1
					a = d.Decide(cmd)
					l.legal(d)
				})
				if repeats := row.want == command.AnswerOK; a.Code != row.want || a.Repeated != repeats || a.Joined != repeats || kinds != nil ||
					repeats && (a.Run != made.Run || a.Life != made.Life) {
					t.Errorf("%s, merges %t: answer %+v with events %v, want code %d, and run %d", at, merges, a, kinds, row.want, made.Run)
				}
				if err := a.Err("x"); (row.want == command.AnswerKeyUsed) != errors.Is(err, task.ErrOtherRequest) || err != nil && !strings.Contains(err.Error(), `"a key"`) {
					t.Errorf("%s: error %v", at, err)
				}
			}
		}
	}
}

// Held tasks are as many and as large as the live ones they were: a shard that is full of both takes no task more.
func TestSubmit_CountsHeldTasksAgainstTheLimit(t *testing.T) {
	l := newJournalDriver(t)
	c := l.ask(events.Policy{})
	c.RequestID = "k"
	l.decide(c)
	l.start(ledgerTask, "n-1")
	l.decide(l.done(command.Succeeded))
	other := l.ask(events.Policy{})
	other.Task = "other"
	for _, row := range []struct {
		pause time.Duration
		want  command.AnswerCode
	}{{10 * time.Minute, command.AnswerOverload}, {time.Minute, command.AnswerOK}} {
		for ; row.pause > 0; row.pause -= time.Minute { // that much counts between two entries
			l.now = l.now.Add(time.Minute)
			l.decide(&command.Submit{Task: "past", Behavior: "work", Policy: other.Policy})
			l.decide(&command.Operate{Task: "past", Do: command.DoDelete})
		}
		var a command.Answer
		l.entry(func(d *command.Decider) {
			d.LiveLimit = 100
			a = d.Decide(other)
			l.legal(d)
		})
		if a.Code != row.want {
			t.Errorf("after %s: answer %+v, want code %d; %d are held", row.pause, a, row.want, l.state.Held())
		}
	}
}

// Tasks of a request of many derive from the id of the one task that a single request of the same key would have.
func TestSubmit_TellsARequestOfManyTasksFromOneOfTheSameKey(t *testing.T) {
	one := events.Request{Behavior: "work"}
	many, fewer := []events.Request{one, one, one}, []events.Request{one, one}
	derived, random := events.TaskOfRequest("", "work", "k"), events.TaskOfRequest("", "work", "another")
	other := events.Request{Behavior: "work", Priority: 1}
	submit := func(l *journalDriver, id events.TaskID, request string) command.AnswerCode {
		c := l.ask(events.Policy{})
		c.Task, c.RequestID = id, request
		a, _ := l.decide(c)
		return a.Code
	}
	for _, row := range []struct {
		first, then       events.TaskID
		firstKey, thenKey string
		want              command.AnswerCode
	}{
		{derived + "/0", derived, events.RequestsID("k", many), one.ID("k"), command.AnswerKeyUsed},
		{derived, derived + "/0", one.ID("k"), events.RequestsID("k", many), command.AnswerKeyUsed},
		{derived, derived + "/2", one.ID("k"), events.RequestsID("k", many), command.AnswerKeyUsed},
		{derived + "/0", derived + "/2", events.RequestsID("k", fewer), events.RequestsID("k", many), command.AnswerKeyUsed},
		{derived + "/0", derived + "/2", events.RequestsID("k", many), events.RequestsID("k", many), command.AnswerOK},
		{derived + "/0", derived, events.RequestsID("other", many), one.ID("k"), command.AnswerOK},
		{derived + "/0", derived, events.RequestsID("k", many), "", command.AnswerOK},
		{"order", "order/0", one.ID("k"), events.RequestsID("k", many), command.AnswerOK}, // named by callers: the key counts within each
		{"order/0", "order", events.RequestsID("k", many), one.ID("k"), command.AnswerOK},
		{derived, derived + "/ship", one.ID("k"), other.ID("k"), command.AnswerOK}, // a task of the request passes its key on
		{random, random + "/0", one.ID("k"), other.ID("k"), command.AnswerOK},      // that a random id looks derived means nothing
		{random + "/0", random + "/1", one.ID("k"), other.ID("k"), command.AnswerOK},
	} {
		l := newJournalDriver(t)
		if code := submit(l, row.first, row.firstKey); code != command.AnswerOK {
			t.Fatalf("%s: answer %d", row.first, code)
		}
		if code := submit(l, row.then, row.thenKey); code != row.want || (code == command.AnswerOK) != (l.state.Task(row.then) != nil) {
			t.Errorf("%s of %s after %s of %s: answer %d, want %d", row.then, row.thenKey, row.first, row.firstKey, code, row.want)
		}
	}
}

// Nothing else happens in the shard: that a submit is refused has the time counted after which held tasks make room.
func TestSubmit_GetsRoomInAShardThatIsFullOfHeldTasksAlone(t *testing.T) {
	l := newJournalDriver(t)
	c := l.ask(events.Policy{})
	c.RequestID = "k"
	l.decide(c)
	l.start(ledgerTask, "n-1")
	l.decide(l.done(command.Succeeded))
	other := l.ask(events.Policy{})
	other.Task = "other"
	for i := range 13 {
		l.now = l.now.Add(time.Minute)
		var a command.Answer
		l.entry(func(d *command.Decider) {
			d.LiveLimit = 100
			a = d.DecideBatch(&command.Batch{Sender: "s-1", Number: uint64(i + 1), Commands: []command.Command{other}})[0]
		})
		if a.Code == command.AnswerOK {
			return
		}
	}
	t.Error("refused for longer than anything is held")
}
