package shard_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/projection"
)

// A snapshot begins between two entries, never with events that are not committed.
func TestSnapshot_IsOfACommittedState(t *testing.T) {
	b := newFixture(t)
	committed := projection.NewShard(0)
	for i := range 4 {
		b.accept(command.LaneSubmit, &command.Submit{
			Task:     events.TaskID(fmt.Sprint(i)),
			Behavior: benchBehavior,
			Policy:   policyOf(events.Policy{}),
		})
		for _, data := range b.store.entries[committed.Number:] {
			e, err := events.Decode(data)
			if err == nil {
				err = committed.Replay(e)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		entry, parts := b.own.TakeSnapshot()
		restorer := projection.NewRestorer(0)
		for _, part := range parts {
			if err := restorer.Add(part); err != nil {
				t.Fatal(err)
			}
		}
		restored, err := restorer.Done()
		if err != nil {
			t.Fatal(err)
		}
		noPause := func() {}
		if entry != committed.Number || restored.Digest(noPause) != committed.Digest(noPause) {
			t.Errorf("the snapshot of entry %d is not the fold of the %d entries", entry, committed.Number)
		}
	}
}

// A log may be slow, or ask the engine in its turn.
func TestSnapshot_ThatIsGivenUpIsNotLoggedUnderALock(t *testing.T) {
	b, log := newFixture(t), &testkit.CallingLog{}
	b.cfg.Log = slog.New(log)
	b.takeOver()
	log.Do = func() { _ = b.own.SnapshotProblem() }
	b.own.GiveUpSnapshot(1, errors.New("cut"))
	if log.Records() != 1 || b.own.SnapshotProblem() != "cut" {
		t.Errorf("%d lines, problem %q; want one, and that it was cut", log.Records(), b.own.SnapshotProblem())
	}
}
