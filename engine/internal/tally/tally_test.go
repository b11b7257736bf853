package tally_test

import (
	"fmt"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/tally"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/projection"
)

func note(t *tally.Tally, behavior string) {
	t.Note(&projection.Task{Kind: &projection.Kind{Behavior: behavior}}, &events.Event{Body: &events.Created{Behavior: behavior}})
}

// Behaviors are named by users: however many there are, an owner keeps and tells figures of few.
func TestTally_CountsBehaviorsBeyondTheBoundTogether(t *testing.T) {
	one := tally.New(nil)
	for i := range 3 * meter.MaxBehaviors {
		for range 2 {
			note(one, fmt.Sprintf("b-%03d", i))
		}
	}
	if behaviors, _ := one.Figures(); len(behaviors) != meter.MaxBehaviors+1 {
		t.Fatalf("figures of %d behaviors", len(behaviors))
	}
	one.Count(0, 0)
	all, err := meter.Unpack(one.Figures())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		want := int64(2)
		if f.Behavior == meter.Other {
			want = 2 * 2 * meter.MaxBehaviors
		}
		if got := f.Counts[meter.TasksCreated]; got != want {
			t.Errorf("%s: %d created, want %d", f.Behavior, got, want)
		}
	}
}

func TestTally_CountsNothingBeforeItIsToldThatItIsCommitted(t *testing.T) {
	one := tally.New(nil)
	note(one, "work")
	sum := func() (n int64) {
		_, numbers := one.Figures()
		for _, number := range numbers {
			n += number
		}
		return n
	}
	if n := sum(); n != 0 {
		t.Errorf("counted %d before", n)
	}
	one.Count(0, 0)
	one.Count(0, 0)
	if n := sum(); n != 1 {
		t.Errorf("counted %d", n)
	}
}

// A refused submit counts for its behavior where that has tasks, whether or not anything of them was counted, and
// its second step does as the first.
func TestTally_CountsRefusalsOfBehaviorsThatHaveTasks(t *testing.T) {
	one := tally.New(nil)
	no := command.Answer{Code: command.AnswerOverload}
	one.Refused([]command.Command{
		&command.Submit{Behavior: "work"}, &command.Merge{Submit: command.Submit{Behavior: "work"}}, &command.Submit{Behavior: "strange"},
		&command.Merge{Submit: command.Submit{Behavior: "work"}, Operator: true}, &command.Submit{Behavior: "work"},
	}, []command.Answer{no, no, no, no, {Code: command.AnswerOK}}, func(behavior string) bool { return behavior == "work" })
	one.Count(0, 0)
	all, err := meter.Unpack(one.Figures())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if want := map[string]int64{"work": 2, meter.Other: 1}[f.Behavior]; f.Counts[meter.SubmitsRefused] != want {
			t.Errorf("%s: %d refused, want %d", f.Behavior, f.Counts[meter.SubmitsRefused], want)
		}
	}
	if len(all) != 2 {
		t.Errorf("figures of %d behaviors", len(all))
	}
}

// An entry under load costs no memory once there is room for its times.
func TestTally_AllocatesNothingForEvents(t *testing.T) {
	one := tally.New(nil)
	task := &projection.Task{
		Kind:        &projection.Kind{Behavior: "work"},
		Due:         1,
		CreatedAt:   1,
		LastAttempt: projection.LastAttempt{StartedAt: 2},
	}
	all := []*events.Event{{Body: &events.Created{}}, {Body: &events.Started{Attempt: 1}}, {Body: &events.Succeeded{}}}
	if n := testing.AllocsPerRun(1000, func() {
		for range 100 {
			one.Starts(task)
			for _, ev := range all {
				one.Note(task, ev)
			}
		}
		one.Count(0, 0)
	}); n != 0 {
		t.Errorf("%v allocations for an entry", n)
	}
}

// The alert on final failures calls an operator, who need not come while the next run of a periodic task follows.
func TestTally_AFailureThatARepetitionFollowsIsNotFinal(t *testing.T) {
	one := tally.New(nil)
	for _, next := range []events.Millis{0, 100} {
		failed := &events.Failed{Error: events.Error{Code: "x"}, Run: 1, Next: next}
		one.Note(&projection.Task{Kind: &projection.Kind{Behavior: "b"}}, &events.Event{Body: failed})
	}
	one.Count(0, 0)
	all, err := meter.Unpack(one.Figures())
	if err != nil || len(all) != 1 || all[0].Counts[meter.Failures] != 2 || all[0].Counts[meter.FinalFailures] != 1 {
		t.Errorf("%+v, %v; want 2 failures, one of them final", all, err)
	}
}
