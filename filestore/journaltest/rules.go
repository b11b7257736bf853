package journaltest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"taskledger/filestore/journal"
)

var entries = map[string]func(*world){
	"Read/OfAnEmptyShardYieldsNothing": func(w *world) {
		w.wantEntries(0, 1, 0)
		w.wantEntries(0, 7, 6)
		w.wantEntries(journal.Notes, 1, 0)
	},
	"Read/YieldsEveryEntryOnceInOrder": func(w *world) {
		w.fill(0, 1, 100)
		for _, from := range []uint64{1, 2, 16, 17, 18, 99, 100, 101, 200} {
			w.wantEntries(0, from, max(100, from-1))
		}
	},
	"Read/ShardsAreSeparate": func(w *world) {
		for number := uint64(1); number <= 20; number++ {
			w.append(entry(1, number))
			w.append(entry(255, number))
		}
		w.fill(1, 21, 22)
		w.wantEntries(0, 1, 0)
		w.wantEntries(1, 1, 22)
		w.wantEntries(255, 1, 20)
	},
	"Read/EndsWithWhatWasThereAtItsCall": func(w *world) {
		w.fill(0, 1, 40)
		seen, all := 0, w.Read(0, 1)
		w.fill(0, 41, 50)
		for _, err := range all {
			if seen++; err != nil {
				w.Fatal(err)
			}
		}
		if seen != 40 {
			w.Errorf("read %d entries, want 40", seen)
		}
	},
	"Read/MayBeLeftEarly": func(w *world) {
		w.fill(0, 1, 40)
		for range w.Read(0, 3) {
			break
		}
		w.fill(0, 41, 41)
		w.wantEntries(0, 1, 41)
	},
	"Read/WhatIsYieldedBelongsToTheReceiver": func(w *world) {
		w.fill(0, 1, 2)
		for e := range w.Read(0, 1) {
			clear(e.Data)
		}
		w.wantEntries(0, 1, 2)
	},
	"Append/KeepsNoBytesOfTheCaller": func(w *world) {
		e := entry(0, 1)
		e.Data = bytes.Clone(e.Data)
		w.append(e)
		clear(e.Data)
		w.wantEntries(0, 1, 1)
	},
	"Append/AnyBytesComeBackAsTheyWere": func(w *world) {
		var all []journal.Entry
		for i, data := range [][]byte{{0}, make([]byte, 511), make([]byte, 512), make([]byte, 100_000), make([]byte, 1<<20),
			bytes.Repeat([]byte{0xff}, 4096), []byte(strings.Repeat("text\n", 1000))} {
			e := entry(0, uint64(i)+1)
			e.Data = data
			w.append(e)
			all = append(all, e)
		}
		next := w.pull(w.Read(0, 1))
		for _, e := range all {
			w.wantEntry(next(), e)
		}
	},
	"Append/ShardsAtOnceAllGetThrough": func(w *world) {
		const shards, each = 16, 50
		var writing sync.WaitGroup
		for shard := range shards {
			writing.Go(func() {
				for number := uint64(1); number <= each; number++ {
					if err := w.Append(entry(shard, number)); err != nil {
						w.Error(err)
						return
					}
				}
			})
		}
		writing.Wait()
		for shard := range shards {
			w.wantEntries(shard, 1, each)
		}
	},
	"Close/AgainDoesNothing": func(w *world) {
		w.fill(0, 1, 1)
		for range 2 {
			if err := w.Close(); err != nil {
				w.Error(err)
			}
		}
	},
}

var snapshots = map[string]func(*world){
	"Snapshot/ThatWasNeverWrittenIsZero": func(w *world) {
		w.wantSnapshot(journal.Key{}, 0)
		w.wantSnapshot(journal.Key{Shard: journal.Notes}, 0)
	},
	"Snapshot/ReplacesTheOneOfItsKeyAlone": func(w *world) {
		notes := journal.Key{Shard: journal.Notes}
		for slot := range journal.Slots {
			w.snapshot(journal.Key{Shard: 3, Slot: slot}, 1, fmt.Sprint("slot ", slot))
		}
		w.snapshot(notes, 0, "notes")
		w.snapshot(journal.Key{Shard: 3, Slot: 1}, 1, "another", "", "part")
		w.wantSnapshot(journal.Key{Shard: 3, Slot: 0}, 1, "slot 0")
		w.wantSnapshot(journal.Key{Shard: 3, Slot: 1}, 1, "another", "", "part")
		w.wantSnapshot(journal.Key{Shard: 3, Slot: 2}, 1, "slot 2")
		w.wantSnapshot(journal.Key{Shard: 2, Slot: 1}, 0)
		w.wantSnapshot(notes, 0, "notes")
		w.snapshot(journal.Key{Shard: 3, Slot: 1}, 1)
		w.wantSnapshot(journal.Key{Shard: 3, Slot: 1}, 1)
	},
	"Snapshot/KeepsNoBytesOfTheCaller": func(w *world) {
		parts := [][]byte{[]byte("one"), []byte("two")}
		if err := w.WriteSnapshot(journal.Key{}, journal.Snapshot{Parts: parts}); err != nil {
			w.Fatal(err)
		}
		clear(parts[0])
		parts[1] = nil
		w.wantSnapshot(journal.Key{}, 0, "one", "two")
	},
	"Snapshot/EntriesThatAreNeededStay": func(w *world) {
		w.fill(0, 1, 60)
		w.fill(1, 1, 60)
		for _, first := range []uint64{0, 1, 2, 30, 30, 59} {
			w.snapshot(journal.Key{Slot: int(first) % 2}, first, "state")
			w.wantEntries(0, max(first, 1), 60)
			w.wantEntries(1, 1, 60)
		}
		w.fill(0, 61, 62)
		w.wantEntries(0, 59, 62)
	},
	"Snapshot/NumbersGoOnWhenNoEntryIsNeeded": func(w *world) {
		w.fill(0, 1, 5)
		w.snapshot(journal.Key{}, 6, "state")
		w.fill(0, 6, 7)
		w.wantEntries(0, 6, 7)
	},
}

var reopenings = map[string]func(*world){
	"Again/EverythingIsThere": func(w *world) {
		w.fill(0, 1, 50)
		w.fill(7, 1, 3)
		w.snapshot(journal.Key{Slot: 2}, 30, "state", "")
		w.snapshot(journal.Key{Shard: journal.Notes}, 0, "notes")
		for range 3 {
			w.reopen()
			w.wantEntries(0, 30, 50)
			w.wantEntries(7, 1, 3)
			w.wantSnapshot(journal.Key{Slot: 2}, 30, "state", "")
			w.wantSnapshot(journal.Key{Shard: journal.Notes}, 0, "notes")
		}
		w.fill(0, 51, 52)
		w.reopen()
		w.wantEntries(0, 30, 52)
	},
	"Again/NumbersGoOnWhenNoEntryWasNeeded": func(w *world) {
		w.fill(0, 1, 5)
		w.snapshot(journal.Key{}, 6, "state")
		w.reopen()
		w.wantEntries(0, 6, 5)
		w.fill(0, 6, 7)
		w.reopen()
		w.wantEntries(0, 6, 7)
	},
	"Again/OfAnEmptyOneIsEmpty": func(w *world) {
		w.reopen()
		w.wantEntries(0, 1, 0)
		w.fill(0, 1, 1)
		w.wantEntries(0, 1, 1)
	},
}
