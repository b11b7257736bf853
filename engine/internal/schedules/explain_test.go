package schedules_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/schedules"
	"taskledger/events"
	"taskledger/task"
)

// Explain of a schedule says what it waits for, by the id of its record, and of no other id.
func TestAtOwner_ExplainsWhatAScheduleWaitsFor(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	o.set("lost", "Atlantis/Poseidonis")
	o.set("once", "UTC")
	o.rest()
	expect := func(name string, why task.Reason, text string) {
		t.Helper()
		e, is := o.ExplainRecord(events.ScheduleRecord(name))
		if !is || e.Why != why || !strings.Contains(e.Text, text) {
			t.Errorf("%s: %t, %s: %q, want %s: %q", name, is, e.Why, e.Text, why, text)
		}
	}
	expect("hourly", task.WhyScheduled, "its next tick is at 2027-03-01T10:00:00Z")
	expect("lost", task.WhyNoZone, "node n1")
	o.now += 1_800_000
	o.room.Refusal = "the store is almost full"
	o.turn()
	expect("hourly", task.WhyWaiting, "almost full")
	o.room.Refusal = ""
	o.now = o.NextDue()
	o.rest()
	expect("hourly", task.WhyScheduled, "its next tick is at 2027-03-01T11:00:00Z") // it allows overlaps
	o.turn(&schedules.Steer{
		Name:   "hourly",
		Verb:   int64(schedules.Pause),
		Reason: "moving house",
	})
	expect("hourly", task.WhyPaused, "moving house")
	o.turn(&schedules.Backfill{
		Name:  "hourly",
		From:  int64(o.now - 7_200_000),
		To:    int64(o.now - 3_600_000),
		Ticks: 2,
	})
	expect("hourly", task.WhyPaused, "of the 2 ticks of a backfill are left")
	for _, id := range []events.TaskID{"hourly", "hourly/tick:1", "gone/schedule:", "hourly/schedule:x"} {
		if e, is := o.ExplainRecord(id); is {
			t.Errorf("%s: %+v", id, e)
		}
	}
	o.turn(&schedules.Steer{Name: "hourly", Verb: int64(schedules.Delete)})
	if e, is := o.ExplainRecord("hourly/schedule:"); is {
		t.Errorf("an ended one: %+v", e)
	}
}

// Where runs must not overlap, the run that holds the next tick up is named.
func TestAtOwner_ExplainNamesTheRunThatHasNotEnded(t *testing.T) {
	o := newOwner(t)
	for overlap, text := range map[events.Overlap]string{
		events.OverlapForbid:  "ticks that fall due before are skipped",
		events.OverlapReplace: "the next tick cancels it",
	} {
		o.setTo("s", "0 0 * * * ?", "UTC", o.now+1_800_000)
		o.overlap("s", overlap)
		a := o.turn(&schedules.Run{Name: "s", ID: "s/run:" + text[:3]})
		if a[0].Code != command.AnswerOK {
			t.Fatalf("run: %+v", a[0])
		}
		e, is := o.ExplainRecord("s/schedule:")
		if !is || e.Why != task.WhyRunning || !strings.Contains(e.Text, string(a[0].Data)) || !strings.Contains(e.Text, text) {
			t.Errorf("%t, %s: %q, want %q", is, e.Why, e.Text, text)
		}
	}
}
