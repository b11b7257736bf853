package check_test

import (
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// Submits add nothing while the store is almost full, once that has been seen; what runs goes on, and operators are free.
func TestAll_KnowsWhenTheStoreIsAlmostFull(t *testing.T) {
	added := func(after time.Duration, add func(*builder)) func(*builder) {
		return func(b *builder) {
			b.done("a")
			from := b.clock
			b.pass(after)
			add(b)
			b.run.Faults = append(b.run.Faults, history.Fault{Kind: history.AlmostFullKind, Target: "all", From: from, Until: from + int64(10*time.Second), Proof: "refused"})
			b.pass(time.Minute)
		}
	}
	again := func(b *builder) {
		b.join2("a", true, &events.Rescheduled{At: b.now + 1})
		b.start("a", "n-1")
		b.succeed("a")
	}
	for name, row := range map[string]struct {
		plant func(*builder)
		want  string // "" = nothing
	}{
		"a task before it is seen": {added(4*time.Second, func(b *builder) { b.done("b") }), ""},
		"a task":                   {added(6*time.Second, func(b *builder) { b.done("b") }), "16 braked"},
		"a task when it is over":   {added(11*time.Second, func(b *builder) { b.done("b") }), ""},
		"a further run":            {added(6*time.Second, again), "16 braked"},
		"parameters":               {added(6*time.Second, func(b *builder) { b.join2("a", true, &events.Merged{Params: events.JSON([]byte("12"))}) }), "16 braked"},
		"a run that an operator asks": {added(6*time.Second, func(b *builder) {
			b.command(history.Retry, "a", &events.Rescheduled{At: b.now + 1})
			b.start("a", "n-1")
			b.succeed("a")
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			b.settled(1)
			row.plant(b)
			r := b.finish()
			wallEnds(r)
			found := check.All(r)
			if len(found) > 1 || (len(found) == 1) != (row.want != "") || len(found) == 1 && found[0].Invariant != row.want {
				t.Errorf("found %v, want %q", found, row.want)
			}
		})
	}
}
