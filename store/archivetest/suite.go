// Package archivetest holds an implementation of store.Archive to its contract.
package archivetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/store"
)

// timeout bounds a test that waits for what never comes.
const timeout = 60 * time.Second

// Run runs the suite, in parallel subtests, each on an empty archive of its own.
func Run(t *testing.T, open func(t *testing.T) store.Archive) {
	for _, group := range []map[string]func(*world){appends, reads} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				test(&world{T: t, Archive: open(t), ctx: ctx})
			})
		}
	}
}

// world holds the archive of one test. Its helpers end the test when the archive fails them.
type world struct {
	*testing.T
	store.Archive
	ctx context.Context
}

// Entry makes an entry of a shard, as a journal would hold it, with an event that creates each task; the first has
// parameters of the given length, which cannot be compressed.
func Entry(t testing.TB, shard int, number uint64, params int, tasks ...events.TaskID) store.Record {
	t.Helper()
	var b events.Builder
	b.Reset(events.Entry{Shard: uint16(shard), Number: number, Epoch: 7, Owner: "owner", Time: 1_000_000})
	for i, task := range tasks {
		body := &events.Created{Behavior: "noop", Params: events.JSON([]byte("{}"))}
		if i == 0 {
			body.Params = make([]byte, params)
			if params > 0 {
				rand.NewChaCha8([32]byte{1: byte(number)}).Read(body.Params)
				body.Params[0] = 1 // as JSON
			}
		}
		b.Add(events.Event{Task: task, Seq: 1, Body: body})
	}
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	return store.Record{Head: store.Head{Number: number, Revision: int64(100*number) + int64(shard)}, Data: data}
}

// Entries makes n entries from a number on. Each creates the task that Task names.
func Entries(t testing.TB, shard int, from uint64, n int) []store.Record {
	t.Helper()
	var made []store.Record
	for number := from; number < from+uint64(n); number++ {
		made = append(made, Entry(t, shard, number, 20, Task(number)))
	}
	return made
}

// Task returns the id of the task in an entry that Entries made.
func Task(number uint64) events.TaskID { return events.TaskID(fmt.Sprint("task-", number)) }

// Collect returns what seq yields, up to the first error.
func Collect(seq iter.Seq2[store.Record, error]) (got []store.Record, err error) {
	for rec, err := range seq {
		if err != nil {
			return got, err
		}
		got = append(got, rec)
	}
	return got, nil
}

// Compare fails the test unless got is want, byte for byte.
func Compare(t testing.TB, got, want []store.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records %v, want %d %v", len(got), numbers(got), len(want), numbers(want))
	}
	for i := range got {
		if got[i].Head != want[i].Head || !bytes.Equal(got[i].Data, want[i].Data) {
			t.Fatalf("record %d is entry %+v, want entry %+v with the bytes archived", i, got[i].Head, want[i].Head)
		}
	}
}

func numbers(records []store.Record) (n []uint64) {
	for _, rec := range records {
		n = append(n, rec.Number)
	}
	return n
}

func (w *world) entry(shard int, number uint64, params int, tasks ...events.TaskID) store.Record {
	w.Helper()
	return Entry(w, shard, number, params, tasks...)
}

func (w *world) entries(shard int, from uint64, n int) []store.Record {
	w.Helper()
	return Entries(w, shard, from, n)
}

func (w *world) archive(shard int, after store.ArchiveHead, entries []store.Record) store.ArchiveHead {
	w.Helper()
	head, err := w.Archive.Archive(w.ctx, shard, after, entries)
	if err != nil {
		w.Fatal(err)
	}
	if last := entries[len(entries)-1].Number; head.Entry != last || head.Sequence <= after.Sequence {
		w.Fatalf("archived up to entry %d: head %+v after %+v", last, head, after)
	}
	return head
}

// fill archives segments of the given numbers of entries, from entry first on, and returns the entries and the end.
func (w *world) fill(shard int, first uint64, sizes ...int) (all []store.Record, head store.ArchiveHead) {
	w.Helper()
	head.Entry = first - 1
	for _, n := range sizes {
		entries := w.entries(shard, head.Entry+1, n)
		head = w.archive(shard, head, entries)
		all = append(all, entries...)
	}
	return all, head
}

func (w *world) refuse(shard int, after store.ArchiveHead, entries []store.Record, rule string) {
	w.Helper()
	if head, err := w.Archive.Archive(w.ctx, shard, after, entries); !errors.Is(err, store.ErrConflict) {
		w.Errorf("archived after %+v: %+v, %v; want a conflict: %s", after, head, err, rule)
	}
}

func (w *world) wantHead(shard int, want store.ArchiveHead) {
	w.Helper()
	if got, err := w.Head(w.ctx, shard); got != want || err != nil {
		w.Errorf("head of shard %d: %+v, %v; want %+v", shard, got, err, want)
	}
}

func (w *world) wantArchived(shard int, from uint64, want []store.Record) {
	w.Helper()
	got, err := Collect(w.ReadArchive(w.ctx, shard, from))
	if err != nil && (len(want) > 0 || !errors.Is(err, store.ErrNoArchive)) {
		w.Fatalf("read shard %d from %d: %v", shard, from, err)
	}
	Compare(w, got, want)
}
