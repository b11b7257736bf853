// Package journaltest holds an implementation of journal.Journaler to its contract:
//
//	func TestJournal(t *testing.T) {
//		journaltest.Run(t, journaltest.Subject{Open: func(t *testing.T) journal.Journaler { ... }})
//	}
//
// Run it with the race detector, too: what is read and written at once without a lock shows there for certain.
package journaltest

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"testing"

	"taskledger/filestore/journal"
)

// Subject describes a journaler that the suite tests.
type Subject struct {
	// Open opens an empty one. The suite closes it.
	Open func(t *testing.T) journal.Journaler
	// Again opens what a journaler of Open has kept, which is closed. Nil: it keeps nothing.
	Again func(t *testing.T, closed journal.Journaler) journal.Journaler
	// Crash opens what is left of a journaler that is in use by a crash which takes all that it may lose. The suite closes
	// both. Nil: no crash is tested. It wants Again, and is required to test a journaler that is Lossy.
	Crash func(t *testing.T, used journal.Journaler) journal.Journaler
	// Fill leaves no room for any write, until the function is called that it returns. Nil: there is always room.
	Fill func(t *testing.T, j journal.Journaler) (empty func())
}

// Run runs the suite, in parallel subtests, each with a journaler of its own.
func Run(t *testing.T, s Subject) {
	all := map[string]func(*world){}
	for _, group := range []map[string]func(*world){entries, snapshots, together} {
		maps.Copy(all, group)
	}
	if s.Again != nil {
		maps.Copy(all, reopenings)
	}
	if s.Again != nil && s.Crash != nil {
		maps.Copy(all, crashes)
	}
	if s.Fill != nil {
		maps.Copy(all, full)
	}
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{T: t, Journaler: s.Open(t), subject: &s}
			t.Cleanup(w.end)
			test(w)
		})
	}
}

// world holds the journaler of one test. Its helpers end the test when that fails them.
type world struct {
	*testing.T
	journal.Journaler
	subject *Subject
}

func (w *world) end() {
	if err := w.Close(); err != nil {
		w.Errorf("close: %v", err)
	}
}

// reopen closes the journaler and opens it again.
func (w *world) reopen() {
	w.Helper()
	if err := w.Close(); err != nil {
		w.Fatalf("close: %v", err)
	}
	w.Journaler = w.subject.Again(w.T, w.Journaler)
}

// entry makes an entry that tells which one it is.
func entry(shard int, number uint64) journal.Entry {
	return journal.Entry{
		Shard:    shard,
		Number:   number,
		Revision: int64(10*number) + int64(shard),
		Data:     fmt.Appendf(nil, "entry %d of shard %d", number, shard),
	}
}

// fill appends the entries of a shard from a number up to another.
func (w *world) fill(shard int, from, to uint64) {
	w.Helper()
	for number := from; number <= to; number++ {
		w.append(entry(shard, number))
	}
}

func (w *world) append(e journal.Entry) {
	w.Helper()
	if err := w.Append(e); err != nil {
		w.Fatalf("append entry %d of shard %d: %v", e.Number, e.Shard, err)
	}
}

// wantEntries asserts that a shard has the entries from a number up to another, and no more.
func (w *world) wantEntries(shard int, from, to uint64) {
	w.Helper()
	next := from
	for e, err := range w.Read(shard, from) {
		if err != nil {
			w.Fatalf("read entry %d of shard %d: %v", next, shard, err)
		}
		w.wantEntry(e, entry(shard, next))
		next++
	}
	if next != to+1 {
		w.Errorf("shard %d ends before entry %d, want it up to %d", shard, next, to)
	}
}

func (w *world) wantEntry(got, want journal.Entry) {
	w.Helper()
	same := got.Shard == want.Shard && got.Number == want.Number && got.Revision == want.Revision
	if !same || !bytes.Equal(got.Data, want.Data) {
		w.Fatalf("read %+v, want %+v", got, want)
	}
}

// pull returns a function that waits for the next entry and ends the test when there is none.
func (w *world) pull(all iter.Seq2[journal.Entry, error]) func() journal.Entry {
	next, stop := iter.Pull2(all)
	w.Cleanup(stop)
	return func() journal.Entry {
		w.Helper()
		e, err, ok := next()
		if err != nil || !ok {
			w.Fatalf("the entries ended (%v) or failed: %v", !ok, err)
		}
		return e
	}
}

func (w *world) snapshot(k journal.Key, first uint64, parts ...string) {
	w.Helper()
	s := journal.Snapshot{First: first}
	for _, part := range parts {
		s.Parts = append(s.Parts, []byte(part))
	}
	if err := w.WriteSnapshot(k, s); err != nil {
		w.Fatalf("write snapshot %+v: %v", k, err)
	}
}

func (w *world) wantSnapshot(k journal.Key, first uint64, parts ...string) {
	w.Helper()
	s, err := w.ReadSnapshot(k)
	if err != nil || s.First != first || len(s.Parts) != len(parts) {
		w.Fatalf("snapshot %+v is %+v, %v; want %d parts and entries from %d on", k, s, err, len(parts), first)
	}
	for i, part := range parts {
		if string(s.Parts[i]) != part {
			w.Errorf("part %d of snapshot %+v is %q, want %q", i, k, s.Parts[i], part)
		}
	}
}
