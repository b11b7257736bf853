package world

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/store"
)

// What a node calls an error is damage, unless a fault brings it about or nobody is there to hear it.
func TestAlarms_AreDamage(t *testing.T) {
	w := newWorld(1)
	p := &process{world: w, name: "node-0", killed: t.Context()}
	log := slog.New(alarms{p}).With("node", "n")
	log.Warn("nobody must act")
	log.Error(expected[0])
	log.Error("snapshot cannot be read, an earlier state is", "err", store.ErrTrimmed)
	if found := w.record.Run.Damage; len(found) != 0 {
		t.Errorf("damage %v, want none", found)
	}
	log.Error("snapshot cannot be read, an earlier state is", "err", events.ErrDamaged)
	log.Error("answer does not fit its batch", "err", errors.New("too short"))
	if found := w.record.Run.Damage; len(found) != 2 || found[1].Invariant != served || !strings.Contains(found[1].Text, "node-0 says: answer does not fit its batch err=too short") {
		t.Errorf("damage %v, want both", found)
	}
}

// A node that ends by itself, or leaves with an error, is damage.
func TestProcess_ThatEndsByItselfIsDamage(t *testing.T) {
	w := newWorld(1)
	p := &process{world: w, name: "node-0", killed: t.Context()}
	p.supervise(t.Context(), func() error { return errors.New("gone") })
	if found := w.record.Run.Damage; len(found) != 1 || found[0].Invariant != ended {
		t.Errorf("damage %v, want that it ended", found)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	p.supervise(over, func() error { return nil })
	p.killed = over
	p.supervise(t.Context(), func() error { return nil })
	if found := w.record.Run.Damage; len(found) != 1 {
		t.Errorf("damage %v, of a process that was stopped or killed", found)
	}
}
