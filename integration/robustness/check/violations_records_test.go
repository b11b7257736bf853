package check_test

import (
	"slices"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/check"
)

// nightly is the plan of a schedule.
var nightly = events.SchedulePlan{Cron: "0 0 3 * * ?", Zone: "UTC", Behavior: "work", Policy: complete()}

func complete() events.Policy {
	p, err := events.Policy{}.Complete()
	if err != nil {
		panic(err)
	}
	return p
}

// recordSamples has an event of every kind that is of no task, in an order in which they are legal.
func recordSamples(b *builder) []events.Body {
	last := b.heads[events.Settings.Shard(shards)]
	return []events.Body{&events.Paused{Behavior: "work"}, &events.Unpaused{Behavior: "work"},
		&events.ItemAdded{ID: 1, Group: "g", Owner: 7, Data: events.Bytes(nil)}, &events.ItemReplaced{From: 1, To: 2, Owner: 8}, &events.ItemRemoved{ID: 2, Owner: 9}, &events.StoreForgotten{Store: "crawl", Last: 2},
		&events.ScheduleSet{Plan: nightly, Next: 1000}, &events.Ticked{Decision: events.TickMissed, Cause: events.TickOld, From: 1000, To: 2000, Next: 3000}, &events.SchedulePaused{},
		&events.ScheduleResumed{}, &events.BackfillSet{From: 1, To: 2, Ticks: 1}, &events.BackfillEnded{},
		&events.ScheduleDefined{ScheduleSet: events.ScheduleSet{Plan: named(nightly), Next: 3000}}, &events.ScheduleEnded{},
		&events.AcceptedLoss{Entry: last.Number + 1, Sound: last.Hash, Reason: "torn"}, &events.Recovered{Entry: last.Number, Sound: last.Hash}}
}

func TestAll_JudgesEveryKindOfRecord(t *testing.T) {
	b := newBuilder(t)
	b.set(events.Settings.Shard(shards), &events.Paused{Behavior: "sleep"})
	samples := recordSamples(b)
	for _, kind := range events.Kinds() {
		if kind.Record() != events.OfTask && !slices.ContainsFunc(samples, func(body events.Body) bool { return body.Kind() == kind }) {
			t.Errorf("%s has no sample", kind)
		}
	}
	b.set(events.Settings.Shard(shards), samples...)
	b.sound()
}

func TestAll_FindsWhatRecordsForbid(t *testing.T) {
	in := events.Settings.Shard(shards)
	for name, plant := range map[string]func(b *builder){
		"a behavior is paused twice":      func(b *builder) { b.pauses("work"); b.pauses("work") },
		"what is not paused is unpaused":  func(b *builder) { b.unpause("work") },
		"something is paused elsewhere":   func(b *builder) { b.set(1-in, &events.Paused{Behavior: "work"}) },
		"a sequence is left out":          func(b *builder) { b.event = func(ev *events.Event) { ev.Seq++ }; b.pauses("work") },
		"a predecessor is another":        func(b *builder) { b.event = func(ev *events.Event) { ev.Prev++ }; b.pauses("work") },
		"an entry to come is given up":    func(b *builder) { b.set(in, &events.AcceptedLoss{Entry: 3}) },
		"another hash is the last one":    func(b *builder) { b.set(in, &events.AcceptedLoss{Entry: 1, Sound: events.Hash{1}}) },
		"a loss is of what is to come":    func(b *builder) { b.set(in, &events.Recovered{Entry: 1}) },
		"a loss follows another sequence": func(b *builder) { b.event = func(ev *events.Event) { ev.Seq = 2 }; b.set(in, &events.Recovered{}) },
	} {
		b := newBuilder(t)
		plant(b)
		if found := check.All(b.finish()); len(found) != 1 || found[0].Invariant != "2 legal" {
			t.Errorf("%s: found %v", name, found)
		}
	}
}
