package archivetest

import (
	"errors"
	"sync"

	"taskledger/events"
	"taskledger/store"
)

var appends = map[string]func(*world){
	"Append/EmptyArchiveEndsAtZero": func(w *world) {
		w.wantHead(0, store.ArchiveHead{})
	},
	"Append/SegmentsContinueEachOther": func(w *world) {
		all, head := w.fill(0, 1, 3, 1, 2)
		w.wantHead(0, head)
		w.wantArchived(0, 1, all)
	},
	"Append/AnArchiveMayBeginLate": func(w *world) {
		all, head := w.fill(0, 41, 2, 2)
		w.wantHead(0, head)
		w.wantArchived(0, 41, all)
	},
	"Append/SentAgainIsStoredOnce": func(w *world) {
		_, one := w.fill(0, 1, 2)
		two := w.entries(0, 3, 2)
		head := w.archive(0, one, two)
		if again := w.archive(0, one, two); again != head {
			w.Errorf("sent again: %+v, want %+v", again, head)
		}
		w.wantHead(0, head)
		w.wantArchived(0, 3, two)
	},
	"Append/AfterAStaleHeadIsRefused": func(w *world) {
		all, one := w.fill(0, 1, 2)
		head := w.archive(0, one, w.entries(0, 3, 2))
		w.refuse(0, one, w.entries(0, 3, 3), "another segment follows")
		w.refuse(0, store.ArchiveHead{}, w.entries(0, 1, 4), "the archive is not empty")
		w.wantHead(0, head)
		w.wantArchived(0, 1, append(all, w.entries(0, 3, 2)...))
	},
	"Append/OtherBytesOfTheSameEntriesAreRefused": func(w *world) {
		_, one := w.fill(0, 1, 2)
		head := w.archive(0, one, w.entries(0, 3, 1))
		w.refuse(0, one, []store.Record{w.entry(0, 3, 20, "other")}, "an entry is archived once")
		w.wantHead(0, head)
	},
	"Append/EntriesThatDoNotContinueAreRefused": func(w *world) {
		all, one := w.fill(0, 1, 2)
		w.refuse(0, one, w.entries(0, 4, 1), "entry 3 is missing")
		w.refuse(0, one, w.entries(0, 2, 2), "entry 2 is archived already")
		w.refuse(0, one, append(w.entries(0, 3, 1), w.entries(0, 5, 1)...), "entry 4 is missing")
		w.wantHead(0, one)
		w.wantArchived(0, 1, all)
	},
	"Append/WhatIsNoEntryOfTheShardIsRefused": func(w *world) {
		garbage := store.Record{Head: store.Head{Number: 1, Revision: 1}, Data: []byte("garbage")}
		for _, entries := range [][]store.Record{{garbage}, w.entries(1, 1, 1)} {
			if _, err := w.Archive.Archive(w.ctx, 0, store.ArchiveHead{}, entries); !errors.Is(err, events.ErrDamaged) {
				w.Errorf("archived what nobody could read: %v", err)
			}
		}
		w.wantHead(0, store.ArchiveHead{})
	},
	"Append/NoEntriesAreRefused": func(w *world) {
		w.wantNoSegment(store.ArchiveHead{}, nil)
		all, head := w.fill(0, 1, 2)
		w.wantNoSegment(head, nil)
		w.wantNoSegment(head, []store.Record{})
		w.wantHead(0, head)
		w.wantArchived(0, 1, all)
	},
	// The bytes can be compressed, so that what an archive stores may be small.
	"Append/MoreThanASegmentHoldsIsRefused": func(w *world) {
		all, head := w.fill(0, 1, 2)
		var large []store.Record
		for size := 0; size <= store.MaxSegmentBytes; size += len(large[len(large)-1].Data) {
			large = append(large, w.compressible(head.Entry+uint64(len(large))+1))
		}
		w.wantNoSegment(head, large)
		w.wantHead(0, head)
		w.wantArchived(0, 1, all)
		w.archive(0, head, large[:len(large)-1])
		w.wantArchived(0, 1, append(all, large[:len(large)-1]...))
	},
	"Append/OfTwoWritersOneWins": func(w *world) {
		_, head := w.fill(0, 1, 1)
		for range 10 {
			offers := [2][]store.Record{w.entries(0, head.Entry+1, 1), w.entries(0, head.Entry+1, 2)}
			var heads [2]store.ArchiveHead
			var errs [2]error
			var writing sync.WaitGroup
			for i, entries := range offers {
				writing.Go(func() { heads[i], errs[i] = w.Archive.Archive(w.ctx, 0, head, entries) })
			}
			writing.Wait()
			won := 0
			if errs[0] != nil {
				won = 1
			}
			if errs[won] != nil || !errors.Is(errs[1-won], store.ErrConflict) {
				w.Fatalf("two writers got %v; want one success and one conflict", errs)
			}
			w.wantHead(0, heads[won])
			head = heads[won]
		}
		w.wantArchived(0, 1, w.entries(0, 1, int(head.Entry)))
	},
	"Append/ShardsAreIndependent": func(w *world) {
		var filling sync.WaitGroup
		for shard := range 4 {
			filling.Go(func() {
				var head store.ArchiveHead
				for range 5 {
					var err error
					if head, err = w.Archive.Archive(w.ctx, shard, head, w.entries(shard, head.Entry+1, 2)); err != nil {
						w.Error(err)
						return
					}
				}
			})
		}
		filling.Wait()
		for shard := range 4 {
			w.wantArchived(shard, 1, w.entries(shard, 1, 10))
			w.wantArchived(shard, 6, w.entries(shard, 6, 5))
		}
	},
	"Append/TheLargestEntryFits": func(w *world) {
		third := (events.MaxEntryBytes - 1000) / 3
		var b events.Builder
		b.Reset(events.Entry{Number: 1, Epoch: 7, Owner: "owner", Time: 1})
		for _, task := range []events.TaskID{"a", "b", "c"} {
			b.Add(events.Event{Task: task, Seq: 1, Body: &events.Created{Behavior: "noop", Params: make([]byte, third)}})
		}
		data, err := b.Seal()
		if err != nil {
			w.Fatal(err)
		}
		large := []store.Record{{Head: store.Head{Number: 1, Revision: 1}, Data: data}}
		head := w.archive(0, store.ArchiveHead{}, large)
		w.wantArchived(0, 1, large)
		if err := w.Confirm(w.ctx, 0, head, large); err != nil {
			w.Error(err)
		}
	},
	"Append/AFullSegmentFitsWithTheMostTasks": func(w *world) {
		var full []store.Record
		size := 0
		for number := uint64(1); ; number++ {
			var tasks []events.TaskID
			for i := range uint64(100) {
				tasks = append(tasks, Task(number*100+i))
			}
			next := w.entry(0, number, 1, tasks...)
			if size += len(next.Data); size > store.MaxSegmentBytes {
				break
			}
			full = append(full, next)
		}
		w.archive(0, store.ArchiveHead{}, full)
		w.wantArchived(0, 1, full)
	},
	"Confirm/OfWhatWasArchived": func(w *world) {
		all, one := w.fill(0, 1, 2)
		foreign := w.archive(1, store.ArchiveHead{}, w.entries(1, 1, 1))
		head := w.archive(0, one, w.entries(0, 3, 2))
		w.archive(0, head, w.entries(0, 5, 1))
		if err := w.Confirm(w.ctx, 0, head, w.entries(0, 3, 2)); err != nil {
			w.Error(err)
		}
		other := w.entry(0, 4, 20, "other")
		moved := w.entries(0, 3, 2)
		moved[1].Revision++
		for rule, entries := range map[string][]store.Record{
			"other bytes":            {w.entries(0, 3, 1)[0], other},
			"another revision":       moved,
			"fewer entries":          w.entries(0, 3, 1),
			"more entries":           w.entries(0, 3, 3),
			"entries of another one": all,
		} {
			if err := w.Confirm(w.ctx, 0, head, entries); !errors.Is(err, store.ErrConflict) {
				w.Errorf("%s: confirmed with %v", rule, err)
			}
		}
		for _, sequence := range []uint64{head.Sequence + 100, foreign.Sequence, one.Sequence} {
			at := store.ArchiveHead{Entry: 4, Sequence: sequence}
			if err := w.Confirm(w.ctx, 0, at, w.entries(0, 3, 2)); !errors.Is(err, store.ErrConflict) {
				w.Errorf("at %d instead of %d: confirmed with %v", sequence, head.Sequence, err)
			}
		}
		if err := w.Confirm(w.ctx, 0, store.ArchiveHead{Entry: 5, Sequence: head.Sequence}, w.entries(0, 3, 2)); !errors.Is(err, store.ErrConflict) {
			w.Errorf("a head that names another entry: confirmed with %v", err)
		}
		if err := w.Confirm(w.ctx, 0, head, nil); err == nil {
			w.Error("confirmed that nothing is there")
		}
	},
}

// wantNoSegment asserts that entries of shard 0 are refused.
func (w *world) wantNoSegment(after store.ArchiveHead, entries []store.Record) {
	w.Helper()
	if head, err := w.Archive.Archive(w.ctx, 0, after, entries); !errors.Is(err, store.ErrRefused) {
		w.Errorf("archived %d entries after %+v: %+v, %v; want %v", len(entries), after, head, err, store.ErrRefused)
	}
}

// compressible makes an entry of shard 0 of about 100 KiB, all zeros.
func (w *world) compressible(number uint64) store.Record {
	w.Helper()
	var b events.Builder
	b.Reset(events.Entry{Number: number, Epoch: 7, Owner: "owner", Time: 1})
	b.Add(events.Event{Task: Task(number), Seq: 1, Body: &events.Created{Behavior: "noop", Params: make([]byte, 100<<10)}})
	data, err := b.Seal()
	if err != nil {
		w.Fatal(err)
	}
	return store.Record{Head: store.Head{Number: number, Revision: int64(number)}, Data: data}
}
