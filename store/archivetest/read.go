package archivetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/store"
)

var reads = map[string]func(*world){
	"Read/FromAnyEntry": func(w *world) {
		all, _ := w.fill(0, 1, 3, 1, 1, 4, 2, 1, 5)
		w.fill(1, 1, 2, 2) // among the sequences of the other
		for from := range all {
			w.wantArchived(0, uint64(from)+1, all[from:])
		}
		w.wantArchived(0, 0, all)
	},
	"Read/BeyondTheEndIsEmpty": func(w *world) {
		w.wantArchived(0, 1, nil)
		w.wantArchived(0, 5, nil)
		all, _ := w.fill(0, 1, 2, 2)
		w.wantArchived(0, uint64(len(all))+1, nil)
		w.wantArchived(0, 1_000_000, nil)
		w.wantArchived(1, 1, nil)
	},
	"Read/BeforeTheFirstIsTrimmed": func(w *world) {
		all, _ := w.fill(0, 5, 2, 2)
		for from := range uint64(5) {
			if got, err := Collect(w.ReadArchive(w.ctx, 0, from)); !errors.Is(err, store.ErrTrimmed) || len(got) > 0 {
				w.Errorf("from entry %d, before the first one archived: %v, %v", from, numbers(got), err)
			}
		}
		w.wantArchived(0, 5, all)
	},
	"Read/EndsWhereTheArchiveEndedAtTheCall": func(w *world) {
		all, head := w.fill(0, 1, 2, 2)
		var got []store.Record
		for rec, err := range w.ReadArchive(w.ctx, 0, 1) {
			if err != nil {
				w.Fatal(err)
			}
			if got = append(got, rec); len(got) == 1 {
				w.archive(0, head, w.entries(0, 5, 1))
			}
		}
		Compare(w, got, all)
	},
	"Read/MayBeLeftEarly": func(w *world) {
		all, _ := w.fill(0, 1, 2, 2, 2)
		var got []store.Record
		for rec, err := range w.ReadArchive(w.ctx, 0, 1) {
			if err != nil {
				w.Fatal(err)
			}
			if got = append(got, rec); len(got) == 3 {
				break
			}
		}
		Compare(w, got, all[:3])
	},
	"Read/OfWhatBeganAnew": func(w *world) {
		old, end := w.fill(0, 1, 2, 2, 2, 2)
		anew := store.ArchiveHead{Entry: 5, Sequence: end.Sequence, Begins: end.Sequence}
		late := []store.Record{w.entry(0, 6, 7, "anew-6"), w.entry(0, 7, 7, "anew-7")}
		head := w.archive(0, anew, late)
		if head.Begins != end.Sequence || head.Entry != 7 {
			w.Errorf("the end is %+v", head)
		}
		w.wantHead(0, head)
		want := append(slices.Clone(old[:5]), late...)
		for from := range uint64(len(want)) {
			w.wantArchived(0, from+1, want[from:])
		}
		more := []store.Record{w.entry(0, 8, 7, "anew-8")}
		head = w.archive(0, head, more)
		want = append(want, more...)
		w.wantArchived(0, 1, want)
		again := store.ArchiveHead{Entry: 2, Sequence: head.Sequence, Begins: head.Sequence}
		last := []store.Record{w.entry(0, 3, 7, "again-3")}
		head = w.archive(0, again, last)
		if err := w.Confirm(w.ctx, 0, head, last); err != nil {
			w.Errorf("confirm: %v", err)
		}
		want = append(slices.Clone(old[:2]), last...)
		w.wantArchived(0, 1, want)
		w.wantArchived(0, 3, last)
		w.wantArchived(0, 4, nil)
		for _, gone := range []events.TaskID{"anew-6", "anew-8"} {
			for rec, err := range w.FindArchived(w.ctx, 0, gone, math.MaxUint64) {
				if err != nil || rec.Number > 2 && !bytes.Equal(rec.Data, last[0].Data) {
					w.Errorf("task %s is found in entry %d, %v", gone, rec.Number, err)
				}
			}
		}
		found := false
		for rec, err := range w.FindArchived(w.ctx, 0, "again-3", math.MaxUint64) {
			found = found || err == nil && bytes.Equal(rec.Data, last[0].Data)
		}
		if !found {
			w.Error("a task of the last part is not found")
		}
	},
	"Read/TellsOfAGapBeforeWhatBeganAnew": func(w *world) {
		old, end := w.fill(0, 1, 2, 3)
		anew := store.ArchiveHead{Entry: 7, Sequence: end.Sequence, Begins: end.Sequence}
		late := []store.Record{w.entry(0, 8, 7, "anew-8"), w.entry(0, 9, 7, "anew-9")}
		w.wantHead(0, w.archive(0, anew, late))
		for from := uint64(1); from <= 7; from++ {
			var got []store.Record
			var failed error
			for rec, err := range w.ReadArchive(w.ctx, 0, from) {
				if failed = err; err == nil {
					got = append(got, rec)
				}
			}
			if !errors.Is(failed, events.ErrDamaged) {
				w.Errorf("from entry %d the reading ends with %v", from, failed)
			}
			Compare(w, got, old[min(int(from)-1, len(old)):])
		}
		w.wantArchived(0, 8, late)
		w.wantArchived(0, 9, late[1:])
		for last, told := range map[uint64]bool{5: false, 6: true, 9: true, math.MaxUint64: true} {
			var failed error
			for _, err := range w.FindArchived(w.ctx, 0, "nobody", last) {
				failed = err
			}
			if errors.Is(failed, events.ErrDamaged) != told {
				w.Errorf("a task up to entry %d is looked for with %v", last, failed)
			}
		}
	},
	"Append/WhatBeganAnewHasOneWriter": func(w *world) {
		_, end := w.fill(0, 1, 10, 10)
		anew := store.ArchiveHead{Entry: 1, Sequence: end.Sequence, Begins: end.Sequence}
		w.archive(0, anew, []store.Record{w.entry(0, 2, 7, "one")})
		w.refuse(0, anew, []store.Record{w.entry(0, 2, 7, "other")}, "an archive begins anew at its end")
		w.refuse(0, end, w.entries(0, end.Entry+1, 1), "what counts no more is not continued")
	},
	"Read/EndsWithItsContext": func(w *world) {
		w.fill(0, 1, 1, 1, 1)
		w.wantEnds(func(ctx context.Context) iter.Seq2[store.Record, error] { return w.ReadArchive(ctx, 0, 1) })
	},
	"Find/EndsWithItsContext": func(w *world) {
		var head store.ArchiveHead
		for number := uint64(1); number <= 3; number++ {
			head = w.archive(0, head, []store.Record{w.entry(0, number, 20, "wanted")})
		}
		w.wantEnds(func(ctx context.Context) iter.Seq2[store.Record, error] {
			return w.FindArchived(ctx, 0, "wanted", math.MaxUint64)
		})
	},
	"Find/NewestFirst": func(w *world) {
		var head store.ArchiveHead
		for number := uint64(1); number <= 6; number += 2 {
			head = w.archive(0, head, []store.Record{
				w.entry(0, number, 20, "wanted", Task(number)), w.entry(0, number+1, 20, Task(number+1))})
		}
		w.archive(1, store.ArchiveHead{}, []store.Record{w.entry(1, 1, 20, "wanted")}) // not asked for
		got, err := Collect(w.FindArchived(w.ctx, 0, "wanted", math.MaxUint64))
		if err != nil {
			w.Fatal(err)
		}
		if !slices.IsSortedFunc(got, func(a, b store.Record) int { return int(b.Number) - int(a.Number) }) {
			w.Errorf("entries %v, want the newest first", numbers(got))
		}
		w.wantFound(got, "wanted", 5, 3, 1)
	},
	"Find/NothingAfterTheLastEntryAskedFor": func(w *world) {
		var head store.ArchiveHead
		for number := uint64(1); number <= 9; number += 3 {
			var entries []store.Record
			for i := range uint64(3) {
				entries = append(entries, w.entry(0, number+i, 20, "wanted"))
			}
			head = w.archive(0, head, entries)
		}
		for last, want := range [][]uint64{{}, {1}, {2, 1}, {3, 2, 1}, {4, 3, 2, 1}, {5, 4, 3, 2, 1}} {
			got, err := Collect(w.FindArchived(w.ctx, 0, "wanted", uint64(last)))
			if err != nil {
				w.Fatal(err)
			}
			if !slices.Equal(numbers(got), want) {
				w.Errorf("up to entry %d: found %v, want %v", last, numbers(got), want)
			}
		}
	},
	"Find/NoTaskIsOverlooked": func(w *world) {
		random := rand.New(rand.NewPCG(1, 2))
		at := map[events.TaskID][]uint64{}
		var head store.ArchiveHead
		for segment := range 10 {
			var entries []store.Record
			for range 10 {
				number := head.Entry + uint64(len(entries)) + 1
				var tasks []events.TaskID
				for range 10 {
					task := events.TaskID(fmt.Sprintf("%x/%x", random.Uint32(), segment))
					tasks = append(tasks, task)
					at[task] = []uint64{number}
				}
				entries = append(entries, w.entry(0, number, 1, tasks...))
			}
			head = w.archive(0, head, entries)
		}
		read := 0
		wanted := testkit.Some(slices.Sorted(maps.Keys(at)), 4)
		for _, task := range wanted {
			got, err := Collect(w.FindArchived(w.ctx, 0, task, math.MaxUint64))
			if err != nil {
				w.Fatal(err)
			}
			read += len(got)
			w.wantFound(got, task, at[task]...)
		}
		// Of the 9 segments without a task that might have been read for each, at most 3 in 100 were.
		if limit := 10 * (len(wanted) + 27*len(wanted)/100); read > limit {
			w.Errorf("%d entries read to find %d tasks, want %d at most", read, len(wanted), limit)
		}
	},
	"Find/NothingInAnEmptyArchive": func(w *world) {
		if got, err := Collect(w.FindArchived(w.ctx, 0, "wanted", math.MaxUint64)); len(got) > 0 || err != nil && !errors.Is(err, store.ErrNoArchive) {
			w.Errorf("found %v, %v", numbers(got), err)
		}
		w.fill(0, 1, 2)
		if got, err := Collect(w.FindArchived(w.ctx, 1, Task(1), math.MaxUint64)); len(got) > 0 || err != nil {
			w.Errorf("found %v, %v in another shard", numbers(got), err)
		}
	},
}

// wantEnds checks that a sequence of several segments yields the error of its context when that ends after the
// first entry, and nothing else when it ended before.
func (w *world) wantEnds(of func(context.Context) iter.Seq2[store.Record, error]) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	for _, want := range []int{1, 0} {
		var last error
		entries := 0
		for _, err := range of(ctx) {
			if last = err; err == nil {
				entries++
			}
			cancel()
		}
		if !errors.Is(last, context.Canceled) || entries != want {
			w.Errorf("%d entries, want %d, before its context ended with %v", entries, want, last)
		}
	}
}

// wantFound checks which of the records found hold events of the task.
func (w *world) wantFound(found []store.Record, task events.TaskID, want ...uint64) {
	w.Helper()
	var got []uint64
	for _, rec := range found {
		e, err := events.Decode(rec.Data)
		if err != nil {
			w.Fatal(err)
		}
		if slices.ContainsFunc(e.Events, func(ev events.Event) bool { return ev.Task == task }) {
			got = append(got, rec.Number)
		}
	}
	if !slices.Equal(got, want) {
		w.Errorf("task %s found in entries %v, want %v", task, got, want)
	}
}
