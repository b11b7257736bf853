package engine

import (
	"sync"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// Two shards of a node look for a place at once, and a behavior has one. Who loses it starts what else is ready.
func TestNextStart_WhoLosesAPlaceTakesAnother(t *testing.T) {
	b := newBench(t, -1, &plain{id: "limited"}, &plain{id: "free"})
	for task, behavior := range map[string]string{"x": "limited", "y": "free"} {
		c := submitOf(Policy{})
		c.Task, c.Behavior = events.TaskID(task), behavior
		b.accept(command.LaneSubmit, c)
	}
	x := b.m.exec
	x.Max, x.Limits["limited"].Max, x.Limits["free"].Max = 4, 1, 4
	done := make(chan struct{})
	var other sync.WaitGroup
	defer other.Wait()
	defer close(done)
	other.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if x.take("limited") {
				x.untake("limited")
			}
		}
	})
	for range 300_000 {
		best, local, _ := b.own.nextStart()
		if best == nil || !local {
			t.Fatal("nothing is started, though there is a place for one of the behaviors at least")
		}
		x.untake(best.Kind.Behavior)
	}
}

// Attempts that have lent their slots count among those of their behavior, also where its limit is the number of slots.
func TestReserve_CountsWhatStandsOfferedOfEveryBehavior(t *testing.T) {
	b := newBench(t, 4, &plain{id: "work"})
	x := b.m.exec
	x.Limits["work"].Used, x.Lent = 3, 3
	n, detail := x.Reserve(1, nil)
	if n != 1 {
		t.Fatalf("%d slots are set aside, want one", n)
	}
	if more, _ := x.Reserve(1, nil); more != 0 {
		t.Errorf("with three attempts that wait and one that is offered another one is offered, of four")
	}
	x.Unreserve(n, detail, nil)
	if again, _ := x.Reserve(1, nil); again != 1 {
		t.Errorf("%d slots are set aside after the offer was answered, want one", again)
	}
}
