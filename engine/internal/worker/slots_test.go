package worker_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/signal"
	"taskledger/engine/internal/slots"
	"taskledger/task"
)

func TestExecutor_FreedSlotWakesTheFirstShardThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newFixture(t, 1, nil, &script{"b", func(context.Context, task.Attempt) task.Outcome { <-release; return task.Outcome{} }})
		w.launch("b", task.Policy{})
		heads := []slots.Head{{Behavior: "b"}}
		owner := func() *inbox { return &inbox{woken: signal.New()} }
		waiting := []*inbox{owner(), owner(), owner()}
		for _, i := range waiting {
			w.exec.Await(i, heads)
		}
		synctest.Wait()
		if slices.ContainsFunc(waiting, (*inbox).rung) {
			t.Fatal("an owner was woken although no slot is free")
		}
		close(release)
		synctest.Wait()
		for n, i := range waiting {
			if !i.rung() {
				t.Errorf("owner %d was not woken", n)
			}
			w.exec.Leave(i)
		}
		late := owner()
		w.exec.Await(late, heads)
		if !late.rung() {
			t.Error("an owner that looked before the slot was freed and waits after it was not woken")
		}
	})
}

func TestExecutor_EndOfAnOfferWakesThoseWhoWaitForItsSlots(t *testing.T) {
	w := newFixture(t, 3, map[string]int{"limited": 1}, &script{id: "b"}, &script{id: "limited"})
	reserved, detail := w.exec.Reserve(8, map[string]int{"limited": 8})
	if reserved != 3 || w.exec.Free("b") || w.exec.Free("limited") || w.exec.Unused() != 3 {
		t.Fatalf("reserved %d of 3 slots, detail %v", reserved, detail)
	}
	if again, _ := w.exec.Reserve(1, nil); again != 0 {
		t.Errorf("%d slots were reserved twice", again)
	}
	i := &inbox{woken: signal.New()}
	w.exec.Await(i, []slots.Head{{Behavior: "b"}})
	w.exec.Unreserve(reserved, detail, []command.Assignment{{Behavior: "limited"}})
	if !i.rung() {
		t.Error("the owner that waits was not woken")
	}
	if !w.exec.Free("b") || w.exec.Free("limited") || w.exec.Unused() != 2 {
		t.Error("the assigned slot is not the one that is taken")
	}
}

// Attempts that have lent their slots count among those of their behavior, also where its limit is the number of
// slots.
func TestReserve_CountsWhatStandsOfferedOfEveryBehavior(t *testing.T) {
	w := newFixture(t, 4, nil, &script{id: "work"})
	x := w.exec
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
