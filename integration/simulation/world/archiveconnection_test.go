package world

import (
	"testing"
	"testing/synctest"

	"taskledger/store"
	"taskledger/store/archivetest"
	"taskledger/store/memarchive"
)

func TestArchiveConnection_KeepsTheContractOfAnArchive(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) store.Archive {
		w := newWorld(1)
		return &archiveConnection{memarchive.New(), newConnection(w.dice, &w.late, t.Context()), w.bus.port(t.Context())}
	})
}

// The connection has faults, and every request ends.
func TestArchiveConnection_HasFaults(t *testing.T) {
	for name, spoil := range map[string]func(*archiveConnection){
		"away":       func(a *archiveConnection) { a.conn.change(func(f *faultSettings) { f.away++ }) },
		"held":       func(a *archiveConnection) { a.conn.change(func(f *faultSettings) { f.held++ }) },
		"reply lost": func(a *archiveConnection) { a.conn.change(func(f *faultSettings) { f.loseReply = 1 }) },
		"no bus":     func(a *archiveConnection) { a.port.disconnect(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(1)
				a := &archiveConnection{memarchive.New(), newConnection(w.dice, &w.late, t.Context()), w.bus.port(t.Context())}
				spoil(a)
				if _, err := a.Head(t.Context(), 0); err == nil {
					t.Error("it answered")
				}
			})
		})
	}
}
