package world

import (
	"testing"
	"testing/synctest"

	"taskledger/store"
	"taskledger/store/archivetest"
	"taskledger/store/memarchive"
)

func TestReach_KeepsTheContractOfAnArchive(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) store.Archive {
		w := newWorld(1)
		return &reach{memarchive.New(), newWay(w.dice, &w.late, t.Context()), w.bus.port(t.Context())}
	})
}

// The archive has weather, and every request ends.
func TestReach_HasWeather(t *testing.T) {
	for name, spoil := range map[string]func(*reach){
		"away":       func(r *reach) { r.way.change(func(is *weather) { is.away++ }) },
		"held":       func(r *reach) { r.way.change(func(is *weather) { is.held++ }) },
		"reply lost": func(r *reach) { r.way.change(func(is *weather) { is.loseReply = 1 }) },
		"no bus":     func(r *reach) { r.port.disconnect(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(1)
				r := &reach{memarchive.New(), newWay(w.dice, &w.late, t.Context()), w.bus.port(t.Context())}
				spoil(r)
				if _, err := r.Head(t.Context(), 0); err == nil {
					t.Error("it answered")
				}
			})
		})
	}
}
