package check_test

import (
	"slices"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// A repetition waits while the load has filled the store, and starts soon after: nothing else waits for that.
func TestAll_ExcusesRepetitionsWhileTheLoadHasFilledTheStore(t *testing.T) {
	repeated := func(b *builder) {
		b.submit("a")
		b.start("a", "n-1")
		b.succeedNext("a", b.now+5)
	}
	fill := func(b *builder, d time.Duration) {
		b.run.Info.Filled = append(b.run.Info.Filled, history.Span{From: b.clock, Until: b.clock + int64(d)})
		b.pass(d)
	}
	ran := func(b *builder) {
		b.start("a", "n-1")
		b.succeed("a")
	}
	for name, row := range map[string]struct {
		plant func(*builder)
		want  []string
	}{
		"it waits until the store has room": {func(b *builder) { repeated(b); fill(b, time.Minute); ran(b) }, nil},
		"it waits as the history ends":      {func(b *builder) { repeated(b); fill(b, time.Minute) }, nil},
		"it waits in a store with room":     {func(b *builder) { repeated(b); b.pass(time.Minute); ran(b) }, []string{"14 idle"}},
		"it was late when the store filled": {func(b *builder) { repeated(b); b.pass(20 * time.Second); fill(b, time.Minute) }, []string{"14 idle", "8 ended"}},
		"it waits long after":               {func(b *builder) { repeated(b); fill(b, time.Minute); b.pass(20 * time.Second); ran(b) }, []string{"14 idle"}},
		"it stays behind for ever":          {func(b *builder) { repeated(b); fill(b, time.Minute); b.pass(30 * time.Second) }, []string{"14 idle", "8 ended"}},
		"another run of it was asked for": {func(b *builder) {
			repeated(b)
			b.command(history.RunNow, "a", &events.Rescheduled{At: b.now + 1})
			fill(b, time.Minute)
		}, []string{"14 idle", "8 ended"}},
		"a first run waits in the same store": {func(b *builder) { b.submit("a"); fill(b, time.Minute) }, []string{"14 idle", "8 ended"}},
		"another attempt waits, after a failure": {func(b *builder) {
			b.submit("a")
			b.start("a", "n-1")
			b.fail("a", b.now+5)
			fill(b, time.Minute)
		}, []string{"14 idle", "8 ended"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			b.settled(1)
			row.plant(b)
			r := b.finish()
			wallEnds(r)
			var found []string
			for _, v := range check.All(r) {
				found = append(found, v.Invariant)
			}
			slices.Sort(found)
			if !slices.Equal(found, row.want) {
				t.Errorf("found %v, want %v", check.All(r), row.want)
			}
		})
	}
}

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
		"a task":                   {added(6*time.Second, func(b *builder) { b.done("b") }), "16 admission"},
		"a task when it is over":   {added(11*time.Second, func(b *builder) { b.done("b") }), ""},
		"a further run":            {added(6*time.Second, again), "16 admission"},
		"parameters":               {added(6*time.Second, func(b *builder) { b.join2("a", true, &events.Merged{Params: events.JSON([]byte("12"))}) }), "16 admission"},
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
			b.breaks(row.want)
		})
	}
}
