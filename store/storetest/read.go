package storetest

import (
	"context"
	"errors"
	"fmt"

	"taskledger/store"
)

func (w *world) wantRecord(got store.Record, head store.Head) {
	w.Helper()
	if want := fmt.Sprint("entry ", head.Number); got.Head != head || string(got.Data) != want {
		w.Fatalf("got entry %+v %q, want %+v %q", got.Head, got.Data, head, want)
	}
}

var reads = map[string]func(*world){
	"Read/EmptyJournalYieldsNothing": func(w *world) {
		w.wantJournal(1)
		w.wantJournal(7)
	},
	"Read/YieldsEveryEntryOnceInOrder": func(w *world) {
		heads := w.fill(w.own(w.A), store.Head{}, 100)
		for _, from := range []uint64{1, 2, 17, 84, 85, 100} {
			next := pull(w, w.B.Read(w.ctx, 0, from))
			for _, head := range heads[from-1:] {
				w.wantRecord(next(), head)
			}
		}
		w.wantRecord(pull(w, w.B.Read(w.ctx, 0, 0))(), heads[0])
		w.wantJournal(101)
		for i := range heads[1:] {
			if heads[i+1].Revision <= heads[i].Revision {
				w.Errorf("revision %d of entry %d is not after %d", heads[i+1].Revision, i+2, heads[i].Revision)
			}
		}
	},
	"Read/ShardsAreSeparate": func(w *world) {
		session := w.join(w.A)
		w.fill(w.take(w.A, session, 1, store.Owner{}), store.Head{}, 1)
		w.fill(w.take(w.A, session, 0, store.Owner{}), store.Head{}, 2)
		w.wantJournal(1, "entry 1", "entry 2")
	},
	"Read/EndsWithWhatWasThereAtItsCall": func(w *world) {
		o := w.own(w.A)
		heads := w.fill(o, store.Head{}, 100)
		seen := 0
		for _, err := range w.B.Read(w.ctx, 0, 1) {
			if err != nil {
				w.Fatal(err)
			}
			if seen++; seen == 1 {
				w.fill(o, heads[99], 20)
			}
		}
		if seen != 100 {
			w.Errorf("read %d entries, want 100", seen)
		}
	},
	"Read/TrimmedEntryYieldsErrTrimmed": func(w *world) {
		o := w.own(w.A)
		heads := w.fill(o, store.Head{}, 40)
		w.trimTo(w.A, o, 39)
		for _, from := range []uint64{1, 30, 38} {
			failsWith(w, w.A.Read(w.ctx, 0, from), store.ErrTrimmed)
			failsWith(w, w.A.Follow(w.ctx, 0, from), store.ErrTrimmed)
		}
		w.wantRecord(pull(w, w.A.Read(w.ctx, 0, 39))(), heads[38])
		w.wantJournal(41)
	},
	"Backward/YieldsEveryEntryOnceFromTheNewestOn": func(w *world) {
		session := w.join(w.A)
		w.fill(w.take(w.A, session, 1, store.Owner{}), store.Head{}, 3)
		heads := w.fill(w.take(w.A, session, 0, store.Owner{}), store.Head{}, 100)
		for _, from := range []int{0, 1, 2, 16, 17, 84, 100} {
			left := from
			for r, err := range w.B.Backward(w.ctx, 0, uint64(from)) {
				if err != nil || left == 0 {
					w.Fatalf("from entry %d, with %d left: %+v, %v", from, left, r.Head, err)
				}
				w.wantRecord(r, heads[left-1])
				left--
			}
			if left != 0 {
				w.Errorf("from entry %d: it ended before entry %d", from, left)
			}
		}
	},
	"Backward/WhatIsMissingYieldsErrTrimmed": func(w *world) {
		o := w.own(w.A)
		heads := w.fill(o, store.Head{}, 40)
		w.trimTo(w.A, o, 19)
		failsWith(w, w.A.Backward(w.ctx, 0, 41), store.ErrTrimmed)
		failsWith(w, w.A.Backward(w.ctx, 0, 18), store.ErrTrimmed)
		var last error
		number := uint64(40)
		for r, err := range w.A.Backward(w.ctx, 0, number) {
			if last = err; err == nil {
				w.wantRecord(r, heads[number-1])
				number--
			}
		}
		if number != 18 || !errors.Is(last, store.ErrTrimmed) {
			w.Errorf("it ended at entry %d with %v, want %v at entry 18", number, last, store.ErrTrimmed)
		}
	},
	"Backward/EndOfContextIsAnError": func(w *world) {
		w.fill(w.own(w.A), store.Head{}, 1)
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		failsWith(w, w.A.Backward(ctx, 0, 1), context.Canceled)
	},
	"Entry/IsTheOneOfItsNumberOrTrimmed": func(w *world) {
		o := w.own(w.A)
		heads := w.fill(o, store.Head{}, 3)
		w.trimTo(w.A, o, 2)
		for _, head := range heads[1:] {
			r, err := w.B.Entry(w.ctx, 0, head.Number)
			if err != nil {
				w.Fatal(err)
			}
			w.wantRecord(r, head)
		}
		for _, number := range []uint64{0, 1, 4} {
			if r, err := w.B.Entry(w.ctx, 0, number); !errors.Is(err, store.ErrTrimmed) {
				w.Errorf("entry %d is %+v, %v, want %v", number, r, err, store.ErrTrimmed)
			}
		}
	},
	"Read/EndOfContextIsAnError": func(w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		failsWith(w, w.A.Read(ctx, 0, 1), context.Canceled)
	},
	"Follow/YieldsOldAndNewEntriesOnceInOrder": func(w *world) {
		o := w.own(w.A)
		heads := w.fill(o, store.Head{}, 40)
		next := pull(w, w.B.Follow(w.ctx, 0, 3))
		for _, head := range heads[2:] {
			w.wantRecord(next(), head)
		}
		for _, head := range w.fill(o, heads[39], 40) {
			w.wantRecord(next(), head)
		}
	},
	"Follow/WaitsForTheFirstEntry": func(w *world) {
		o := w.own(w.A)
		got := make(chan store.Record)
		go func() {
			defer close(got)
			for r := range w.B.Follow(w.ctx, 0, 1) {
				got <- r
				return
			}
		}()
		head := w.fill(o, store.Head{}, 1)[0]
		w.wantRecord(<-got, head)
	},
	"Follow/IsNotDisturbedByTrims": func(w *world) {
		o := w.own(w.A)
		heads := w.fill(o, store.Head{}, 5)
		next := pull(w, w.B.Follow(w.ctx, 0, 1))
		for _, head := range heads {
			w.wantRecord(next(), head)
		}
		w.trimTo(w.A, o, 4)
		sixth := w.fill(o, heads[4], 1)[0]
		w.wantRecord(next(), sixth)
	},
	"Follow/EndsWithItsContext": func(w *world) {
		o := w.own(w.A)
		w.fill(o, store.Head{}, 1)
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		for _, err := range w.B.Follow(ctx, 0, 1) {
			if err != nil {
				w.Fatal(err)
			}
			cancel()
		}
	},
}
