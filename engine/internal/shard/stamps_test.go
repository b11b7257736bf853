package shard_test

import (
	"slices"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
)

// served asks the owner for task "x", by its id and in a list.
func (b *fixture) served() projection.Task {
	b.Helper()
	answer := b.ask(command.LaneQuery, &command.Get{Task: "x"})
	got, err := command.DecodeTask(answer.Data)
	if err != nil {
		b.Fatal(err)
	}
	got.Sight(events.Millis(answer.Number))
	page, err := command.DecodePage(b.ask(command.LaneQuery, &command.List{Limit: 1}).Data)
	listed := page.Tasks
	if err != nil || len(listed) != 1 || listed[0].LostNotBefore() != got.LostNotBefore() || listed[0].RecheckNotBefore() != got.RecheckNotBefore() {
		b.Fatalf("listed %+v, %v; got %+v", listed, err, got)
	}
	return got
}

// An attempt that goes on for hours is served with stamps that are still to come, as long as its node is there.
func TestStamps_MoveOnWithTheNodeAndStandStillWithoutIt(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, task := b.assign()
	wantStamps := func(from events.Millis) {
		t.Helper()
		got := b.served()
		if recheck, lost := from+task.Lease/3, from+task.Lease; got.RecheckNotBefore() != recheck || got.LostNotBefore() != lost {
			t.Errorf("stamps %d and %d, want %d and %d", got.RecheckNotBefore(), got.LostNotBefore(), recheck, lost)
		}
	}
	look := func() {
		t.Helper()
		b.time = b.time.Add(time.Minute)
		b.node.sighted = b.node.sighted.After(b.time, b.store.members.Nodes, func(node string) bool {
			return slices.Contains(b.own.RunningNodes(), node)
		})
	}
	wantStamps(task.StartedAt)
	for range 3 {
		look()
		wantStamps(b.time)
		if got, now := b.served(), b.own.Now(); got.RecheckNotBefore() <= now {
			t.Errorf("the recheck stamp %d has passed at %d", got.RecheckNotBefore(), now)
		}
	}
	seen := b.time
	b.store.members = present(2, selfID)
	for range 3 {
		look()
		wantStamps(seen)
	}
	if kept := b.node.sighted; len(kept) != 2 {
		t.Errorf("sightings %v, want those of this node and of the one whose attempt is served", kept)
	}
	b.takeOver() // the next owner of this node serves them on
	wantStamps(seen)
	if fold := b.task(); fold.LostNotBefore() != task.StartedAt+task.Lease || fold.Due != 0 {
		t.Errorf("the fold has the stamps of its events no more: %+v", fold)
	}
	b.own.Inbox().Lose(farID)
	b.turn()
	look()
	if kept := b.node.sighted; len(kept) != 1 {
		t.Errorf("sightings %v are kept, of which one serves nothing", kept)
	}
	if got, fold := b.served(), b.task(); got.LostNotBefore() != fold.Due || got.RecheckNotBefore() != fold.Due {
		t.Errorf("a task that waits is served with the stamps %d and %d, want %d", got.RecheckNotBefore(), got.LostNotBefore(), fold.Due)
	}
}
