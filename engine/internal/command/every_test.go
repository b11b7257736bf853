package command_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection/requests"
	"taskledger/task"
)

// everyHour is a task that is repeated, in the middle of an attempt.
func everyHour(t checker) *journalDriver {
	l := newJournalDriver(t)
	l.decide(l.ask(events.Policy{Every: time.Hour, MaxAttempts: 2, MaxLost: 1}))
	l.start(ledgerTask, "n-1")
	l.now = l.now.Add(time.Minute)
	return l
}

func TestEvery_AnotherRunFollowsTheEndOfARunWhateverItWas(t *testing.T) {
	for name, end := range map[string]func(l *journalDriver) (kinds []string){
		"success":         func(l *journalDriver) []string { _, kinds := l.decide(l.done(command.Succeeded)); return kinds },
		"a final failure": func(l *journalDriver) []string { _, kinds := l.decide(l.done(command.Failed)); return kinds },
		"rejected": func(l *journalDriver) []string {
			c := l.done(command.Failed)
			c.Error.Code = events.CodeRejected
			_, kinds := l.decide(c)
			return kinds
		},
		"lost too often": func(l *journalDriver) []string { return l.lose("n-1")[1:] },
		"the last of its attempts": func(l *journalDriver) []string {
			c := l.done(command.Failed)
			c.ByPolicy = true
			l.decide(c)
			l.now = max(l.now, l.task().Due)
			l.start(ledgerTask, "n-1")
			c = l.done(command.Failed)
			c.ByPolicy = true
			_, kinds := l.decide(c)
			return kinds
		},
	} {
		l := everyHour(t)
		kinds := end(l)
		task := l.task()
		if len(kinds) != 1 || task.Final() || task.Due != l.now.Add(time.Hour) || task.Runs != 1 || !task.Repeats() || string(task.Params[1:]) != "1" {
			t.Errorf("%s: %v, %+v", name, kinds, task)
		}
		if n := len(l.outcomes); n != 1 || l.outcomes[0].Run != 1 {
			t.Errorf("%s: %d outcomes, %+v", name, n, l.outcomes)
		}
		l.now = task.Due
		l.start(ledgerTask, "n-2")
		if task := l.task(); task.Failures != 0 || task.Lost != 0 {
			t.Errorf("%s: the next run begins with %d failures and %d losses", name, task.Failures, task.Lost)
		}
	}
}

func TestEvery_OnlyACancelOrADeleteEndsTheRepetition(t *testing.T) {
	cancel := &command.Operate{Task: ledgerTask, Do: command.DoCancel}
	for name, end := range map[string]func(l *journalDriver){
		"cancelled while it runs, and it fails":    func(l *journalDriver) { l.decide(cancel); l.decide(l.done(command.Failed)) },
		"cancelled while it runs, and it succeeds": func(l *journalDriver) { l.decide(cancel); l.decide(l.done(command.Succeeded)) },
		"cancelled while it runs, and it is lost":  func(l *journalDriver) { l.decide(cancel); l.lose("n-1") },
		"cancelled between two runs":               func(l *journalDriver) { l.decide(l.done(command.Failed)); l.decide(cancel) },
	} {
		l := everyHour(t)
		end(l)
		if task := l.task(); !task.Final() {
			t.Errorf("%s: %+v", name, task)
		}
	}
	l := everyHour(t)
	l.decide(l.done(command.Failed))
	if l.decide(&command.Operate{Task: ledgerTask, Do: command.DoDelete}); l.task() != nil {
		t.Errorf("deleted: %+v", l.task())
	}
}

// A behavior may choose another time for one run.
func TestEvery_GivesWayToATimeThatTheBehaviorChooses(t *testing.T) {
	l := everyHour(t)
	c := l.done(command.Succeeded)
	c.Next, c.Wait = command.AnyTime, time.Minute
	l.decide(c)
	if task := l.task(); task.Due != l.now.Add(time.Minute) {
		t.Errorf("due in %d ms, want a minute", task.Due-l.now)
	}
}

func TestEvery_WhatNobodyAskedForIsToldApartFromWhatIsReadyBesides(t *testing.T) {
	l := everyHour(t)
	l.decide(l.done(command.Failed))
	l.now = l.task().Due
	l.state.MakeDue(l.now)
	if l.state.Ready("work") != l.task() || l.state.ReadyBeside("work") != nil || l.task().RunEnded != true {
		t.Errorf("ready %v, beside repetitions %v", l.state.Ready("work"), l.state.ReadyBeside("work"))
	}
	if got := l.state.Substatus(l.task()); got != task.SubReady {
		t.Errorf("substatus %s", got)
	}
	other := l.ask(events.Policy{})
	other.Task = "orders/other"
	l.decide(other)
	if beside := l.state.ReadyBeside("work"); beside == nil || beside.ID != other.Task {
		t.Errorf("beside repetitions %v", beside)
	}
	l.decide(&command.Operate{Task: other.Task, Do: command.DoDelete})
	l = everyHour(t)
	l.decide(l.done(command.Failed))
	l.decide(&command.Operate{Task: ledgerTask, Do: command.DoRunNow})
	if l.state.ReadyBeside("work") != l.task() {
		t.Errorf("a run that an operator asked for is taken for a repetition: %+v", l.task())
	}
}

// One that joins changes nothing when it comes again; a run that another one begins must be remembered.
func TestRequests_ALateOneIsNeverForgottenForAnother(t *testing.T) {
	for _, final := range []bool{false, true} {
		l := newJournalDriver(t)
		submit := func(i int) command.Answer {
			c := l.ask(events.Policy{Existing: events.RunAgain})
			c.RequestID = fmt.Sprint("r-", i)
			a, _ := l.decide(c)
			return a
		}
		for i := range requests.Max {
			submit(i)
		}
		if final {
			l.start(ledgerTask, "n-1")
			l.decide(l.done(command.Succeeded))
		}
		a := submit(requests.Max)
		if want := map[bool]command.AnswerCode{false: command.AnswerOK, true: command.AnswerOverload}[final]; a.Code != want || a.Repeated {
			t.Errorf("final %t: the request after the last that is remembered gets %+v", final, a)
		}
		for i := range requests.Max {
			if a := submit(i); !a.Repeated {
				t.Errorf("final %t: request %d was forgotten: %+v", final, i, a)
			}
		}
		for i := range 11 { // of the time between two entries a minute counts
			l.now = l.now.Add(time.Minute)
			beside := l.ask(events.Policy{})
			beside.Task = events.TaskID(fmt.Sprint("beside-", i))
			l.decide(beside)
		}
		if a := submit(requests.Max); a.Code != command.AnswerOK || l.task().Requests.Of(fmt.Sprint("r-", requests.Max)) == nil {
			t.Errorf("final %t: ten minutes later: %+v, %v", final, a, l.task().Requests)
		}
		if kinds := l.log; !slices.ContainsFunc(kinds, func(ev events.Event) bool { return ev.RequestID == "r-0" }) {
			t.Errorf("final %t: nothing was recorded", final)
		}
	}
}
