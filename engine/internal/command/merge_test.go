package command_test

import (
	"slices"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// A sender that does not compare them must not change the terms of somebody else's task.
func TestMerge_OfAnotherBehaviorIsRefused(t *testing.T) {
	l := ledgerAt(t, atDelayed)
	c := l.merge("2")
	c.Submit.Behavior = "other"
	if a, kinds := l.decide(c); a.Code != command.AnswerState || kinds != nil || !strings.Contains(a.Text, "exists with behavior work, not other") {
		t.Errorf("answered %+v with events %v", a, kinds)
	}
}

// The run has ended since the submitter was asked to combine: there is an outcome, and with ReturnRecorded nothing
// runs again.
func TestMerge_AfterTheEndOfTheRunAnswersTheRecordedOutcome(t *testing.T) {
	for _, at := range []situation{atSuccess, atFailure} {
		for _, mayGo := range []bool{false, true} {
			l := ledgerAt(t, at)
			var a command.Answer
			m := l.merge("2")
			kinds := l.entry(func(d *command.Decider) {
				d.ParamsMayGo = mayGo
				a = d.Decide(m)
				l.legal(d)
			})
			if kinds != nil || a.Code != command.AnswerOK || !a.Joined || a.Run != 1 || a.Life != l.task().Created {
				t.Errorf("%s, params may go: %t: answer %+v with events %v, want the outcome of run 1", at, mayGo, a, kinds)
			}
		}
		l := ledgerAt(t, at)
		retry := l.merge("2")
		retry.Operator = true
		if a, kinds := l.decide(retry); a.Code != command.AnswerOK || a.Run != 2 || strings.Join(kinds, " ") != "Merged Rescheduled" {
			t.Errorf("%s, retry: answer %+v with events %v, want a further run", at, a, kinds)
		}
	}
}

// Two copies of one request, of a behavior that combines, are both asked to: what the first brings the second does
// not bring again.
func TestMerge_OfARequestThatWasRecordedJoins(t *testing.T) {
	for _, at := range []situation{atCreated, atRunning, atSuccess} {
		l := ledgerAt(t, at)
		first := l.merge("2")
		first.Submit.RequestID, first.Submit.Policy.Existing = "r-1", events.RunAgain
		want, _ := l.decide(first)
		second := l.merge("3")
		second.Submit.RequestID, second.Submit.Policy.Existing = "r-1", events.RunAgain
		if a, kinds := l.decide(second); kinds != nil || a.Run != want.Run || a.Life != want.Life {
			t.Errorf("%s: the copy is answered %+v with events %v, want run %d", at, a, kinds, want.Run)
		}
	}
}

func TestMerge_TooLateIsRefusedAndChangesNothing(t *testing.T) {
	for _, at := range situations[1:] {
		for name, spoil := range map[string]func(*command.Merge){
			"another sequence": func(c *command.Merge) { c.Seq-- },
			"another life":     func(c *command.Merge) { c.Life-- },
			"another task":     func(c *command.Merge) { c.Submit.Task = "orders/other" },
		} {
			l := ledgerAt(t, at)
			c := l.merge("2")
			spoil(c)
			if a, kinds := l.decide(c); a.Code != command.AnswerChanged || kinds != nil {
				t.Errorf("%s, %s: answer %+v with events %v, want it changed", at, name, a, kinds)
			}
		}
	}
}

func TestMerge_OntoARunningTaskRunsOnceMoreWhateverHappensToTheAttempt(t *testing.T) {
	for _, between := range []func(l *journalDriver){
		func(*journalDriver) {},
		func(l *journalDriver) { l.lose("n-1") },
		func(l *journalDriver) { l.decide(l.done(command.Released)) },
		func(l *journalDriver) { c := l.done(command.Failed); c.ByPolicy = true; l.decide(c) },
	} {
		l := ledgerAt(t, atRunning)
		promised, _ := l.decide(l.merge("2"))
		between(l)
		if !l.task().OnNode() {
			l.start(ledgerTask, "n-2")
		}
		if _, kinds := l.decide(l.done(command.Succeeded)); !slices.Equal(kinds, []string{"Succeeded", "Rescheduled"}) {
			t.Errorf("the end of the run led to %v, want a further run", kinds)
		}
		l.start(ledgerTask, "n-2")
		if string(l.task().Params) != string(events.JSON([]byte("2"))) && !l.task().ParamsElided {
			t.Errorf("the further run has parameters %q", l.task().Params)
		}
		if _, kinds := l.decide(l.done(command.Succeeded)); !slices.Equal(kinds, []string{"Succeeded"}) {
			t.Errorf("the end of the further run led to %v", kinds)
		}
		if got := l.outcomes[len(l.outcomes)-1].Run; got != promised.Run || promised.Run != 2 {
			t.Errorf("run %d ended, run %d was promised, want 2", got, promised.Run)
		}
	}
}
