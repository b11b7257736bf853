package journaltest

import (
	"errors"

	"taskledger/filestore/journal"
)

var crashes = map[string]func(*world){
	"Crash/LosesTheLastEntriesAtMostAndNoneBeforeASnapshot": func(w *world) {
		notes := journal.Key{Shard: journal.Notes}
		w.fill(0, 1, 20)
		w.fill(7, 1, 5)
		w.snapshot(notes, 0, "notes")
		w.fill(0, 21, 30)
		w.crash()
		if last := w.last(0); last < 20 || last > 30 || last < 30 && !w.mayLose() {
			w.Errorf("shard 0 ends with entry %d", last)
		}
		w.wantEntries(7, 1, 5)
		w.wantSnapshot(notes, 0, "notes")
	},
	"Crash/ThatLosesEntriesIsToldUntilItWasNoted": func(w *world) {
		w.fill(0, 1, 20)
		w.wantLost(false)
		w.crash()
		last := w.last(0)
		if last < 20 {
			w.wantLost(true)
			w.reopen()
			w.wantLost(true)
		}
		if l, is := w.Journaler.(journal.Lossy); is && w.mayLose() {
			if err := l.Told(); err != nil {
				w.Fatal(err)
			}
		}
		w.wantLost(false)
		w.fill(0, last+1, last+3)
		w.reopen()
		w.wantLost(false)
		w.wantEntries(0, 1, last+3)
	},
	"Close/LosesNothing": func(w *world) {
		w.fill(0, 1, 20)
		w.reopen()
		w.crash()
		w.wantEntries(0, 1, 20)
	},
}

var full = map[string]func(*world){
	"Full/AWriteLeavesNothingBehindAndGoesOnWithRoom": func(w *world) {
		k := journal.Key{Shard: 0, Slot: 1}
		w.fill(0, 1, 3)
		w.snapshot(k, 1, "state")
		empty := w.withoutRoom(w.T, w.Journaler)
		for range 3 {
			if err := w.Append(entry(0, 4)); !errors.Is(err, journal.ErrFull) {
				w.Errorf("append without room: %v, want %v", err, journal.ErrFull)
			}
			if err := w.WriteSnapshot(k, journal.Snapshot{First: 2, Parts: [][]byte{[]byte("other")}}); !errors.Is(err,
				journal.ErrFull) {
				w.Errorf("write a snapshot without room: %v, want %v", err, journal.ErrFull)
			}
			w.wantEntries(0, 1, 3)
			w.wantSnapshot(k, 1, "state")
		}
		empty()
		w.fill(0, 4, 5)
		w.snapshot(k, 2, "other")
		w.wantEntries(0, 2, 5)
		w.wantSnapshot(k, 2, "other")
	},
}

// crash goes on with what a crash leaves.
func (w *world) crash() {
	w.Helper()
	used := w.Journaler
	w.Journaler = w.afterwards(w.T, used)
	if err := used.Close(); err != nil {
		w.Errorf("close: %v", err)
	}
}

// last returns the number of the last entry of a shard, whose entries it checks from 1 on.
func (w *world) last(shard int) (number uint64) {
	w.Helper()
	for e, err := range w.Read(shard, 1) {
		if err != nil {
			w.Fatal(err)
		}
		number++
		w.wantEntry(e, entry(shard, number))
	}
	return number
}

func (w *world) mayLose() bool {
	l, is := w.Journaler.(journal.Lossy)
	return is && l.MayLose()
}

// wantLost asserts whether entries that were answered may be missing.
func (w *world) wantLost(want bool) {
	w.Helper()
	why := ""
	if l, is := w.Journaler.(journal.Lossy); is {
		why = l.Lost()
	}
	if (why != "") != want {
		w.Errorf("lost is told as %q, want anything: %v", why, want)
	}
}
