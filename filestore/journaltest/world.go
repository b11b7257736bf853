package journaltest

import (
	"bytes"
	"fmt"
	"iter"
	"testing"

	"taskledger/filestore/journal"
)

// world holds the journaler of one test. Its helpers end the test when that fails them.
type world struct {
	*testing.T
	journal.Journaler
	// The others are those of the Subject.
	again       func(t *testing.T, closed journal.Journaler) journal.Journaler
	afterwards  func(t *testing.T, used journal.Journaler) journal.Journaler
	withoutRoom func(t *testing.T, j journal.Journaler) (empty func())
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
	w.Journaler = w.again(w.T, w.Journaler)
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
