package shard_test

import (
	"sync"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/slots"
	"taskledger/events"
)

// Two shards of a node look for a place at once, and a behavior has one. Whoever loses it starts what else is ready.
func TestNextStart_WhoLosesAPlaceTakesAnother(t *testing.T) {
	b := newWorker(t, 0, "limited", "free")
	for task, behavior := range map[string]string{"x": "limited", "y": "free"} {
		c := submitOf(events.Policy{})
		c.Task, c.Behavior = events.TaskID(task), behavior
		b.accept(command.LaneSubmit, c)
	}
	x := b.node.Slots
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
			if x.Take(nil, slots.Head{Behavior: "limited"}) {
				b.node.Untake("limited")
			}
		}
	})
	for range 300_000 {
		best, local := b.own.NextStart()
		if best == nil || !local {
			t.Fatal("nothing is started, though there is a place for one of the behaviors at least")
		}
		b.node.Untake(best.Kind.Behavior)
	}
}
