package check_test

import (
	"testing"
	"time"

	"taskledger/integration/robustness/check"
)

// A task that is ready wants a slot as long as there is none, not while it runs or one is free beside it.
func TestSlots_WantingIsTheTimeWithoutAFreeOne(t *testing.T) {
	b := newBuilder(t)
	b.settled(1)
	b.submit("b")
	b.start("b", "n-1")
	b.submit("c")
	b.start("c", "n-2")
	b.submit("a")
	from := b.clock
	b.pass(3 * time.Second)
	b.succeed("b")
	b.pass(2 * time.Second)
	b.start("a", "n-1")
	until := b.clock
	b.succeed("a")
	b.succeed("c")
	r := b.finish()
	wallEnds(r)
	slots := check.SlotsOf(r)
	for task, want := range map[string]time.Duration{"a": 3 * time.Second, "b": 0, "never": 0} {
		if got := slots.Wanting(task, from, until); got < want || got > want+10*time.Millisecond {
			t.Errorf("%s: %s, want %s", task, got, want)
		}
	}
}
