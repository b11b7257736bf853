package shard_test

import (
	"errors"
	"log/slog"
	"testing"

	"taskledger/internal/locktest"
)

// A log may be slow, or ask the engine in its turn.
func TestSnapshot_ThatIsGivenUpIsNotLoggedUnderALock(t *testing.T) {
	b, log := newFixture(t), &locktest.Log{}
	b.cfg.Log = slog.New(log)
	b.takeOver()
	log.Do = func() { _ = b.own.SnapshotProblem() }
	b.own.GiveUpSnapshot(1, errors.New("cut"))
	if log.Records() != 1 || b.own.SnapshotProblem() != "cut" {
		t.Errorf("%d lines, problem %q; want one, and that it was cut", log.Records(), b.own.SnapshotProblem())
	}
}
