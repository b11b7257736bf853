package schedules_test

import (
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// The expression of EventNative's design fires at each second of the first hour of a day: each of these 3,600 ticks is
// decided once, by a run of its own where the one before has ended, and then none until the next day.
func TestAtOwner_DecidesThe3600TicksOfTheDesignOnceEach(t *testing.T) {
	o := newOwner(t)
	midnight := events.MillisOf(time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC))
	const id = "source_id_sample_collection"
	o.setTo(id, "0/1 * 0 ? * * *", "UTC", midnight)
	a := o.setPlan(id, id, midnight, func(p *events.SchedulePlan) {
		p.Names, p.Overlap, p.Behavior = events.NamesByUUID, events.OverlapForbid, "collection"
	})
	if a.Code != command.AnswerOK {
		t.Fatalf("%+v", a)
	}
	turns := 0
	for ; o.NextDue() < midnight+86_400_000; turns++ {
		if turns > 20_000 {
			t.Fatal("a turn is always due")
		}
		o.now = max(o.now, o.NextDue())
		told := len(o.ticked())
		o.turn()
		if some := o.ticked()[told:]; len(some) > 0 && some[0].Run != "" { // it ends before the next tick
			o.turn(&command.Operate{Task: some[0].Run, Do: command.DoCancel})
		}
	}
	all := o.ticked()
	if len(all) != 3600 {
		t.Fatalf("%d decisions", len(all))
	}
	for i, b := range all {
		if at := midnight + events.Millis(i)*1000; b.From != at || b.To != at || b.Decision != events.TickCreated {
			t.Fatalf("decision %d: %+v, want a run of %d", i, b, at)
		}
	}
	if due := o.NextDue(); due != midnight+86_400_000 {
		t.Errorf("then due at %d", due)
	}
}
