package filestore_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"taskledger/filestore"
	"taskledger/filestore/journal"
	"taskledger/filestore/memjournal"
	"taskledger/store"
)

// atSnapshots is a journal in memory that calls a function before it writes a snapshot of a shard.
type atSnapshots struct {
	memjournal.Journal
	before func() error
}

func (j *atSnapshots) WriteSnapshot(k journal.Key, s journal.Snapshot) error {
	if k.Shard != journal.Notes && j.before != nil {
		if err := j.before(); err != nil {
			return err
		}
	}
	return j.Journal.WriteSnapshot(k, s)
}

// put puts a snapshot of one part, of the last entry of a shard.
func (w *writer) put() store.SnapshotInfo {
	w.t.Helper()
	s := store.SnapshotInfo{Entry: w.head.Number, Epoch: w.own.Revision, Parts: 1, Bytes: 5}
	if err := w.store.PutPart(w.t.Context(), w.own, s.Entry, 0, []byte("state")); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// wantGone asserts that no part of a snapshot of shard 0 is there.
func wantGone(t *testing.T, s *filestore.Store, snapshot store.SnapshotInfo, why string) {
	t.Helper()
	for part, err := range s.Parts(t.Context(), 0, snapshot) {
		if !errors.Is(err, store.ErrTrimmed) {
			t.Errorf("%s, there is a part %q of snapshot %d, %v", why, part, snapshot.Entry, err)
		}
	}
}

// On a disk that has room for entries alone every snapshot is given up, and the next one is of another entry.
func TestPutPart_KeepsNoPartsOfASnapshotThatWasGivenUp(t *testing.T) {
	j := &atSnapshots{before: func() error { return journal.ErrFull }}
	s := open(t, j)
	w := own(t, s, 0)
	w.fill(1)
	first := w.put()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Publish(ctx, w.own, store.SnapshotPointer{}, first); !errors.Is(err, store.ErrFull) {
		t.Fatalf("published without room: %v", err)
	}
	w.fill(1)
	second := w.put()
	wantGone(t, s, first, "once parts of the next one are put")
	if err := s.Leave(t.Context(), w.own.Session); err != nil {
		t.Fatal(err)
	}
	m, err := s.ReadMembers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	session, err := s.Join(t.Context(), store.NodeInfo{Name: "next", Reads: written}, time.Hour)
	if err == nil {
		w.own, err = s.Take(t.Context(), session, 0, m.Owners[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	wantGone(t, s, second, "once another one owns the shard")
	j.before = nil
	third := w.put()
	if _, err := s.Publish(t.Context(), w.own, store.SnapshotPointer{}, third); err != nil {
		t.Errorf("with room again: %v", err)
	}
	wantGone(t, s, second, "once another one is published")
}

func TestPublish_LeavesItsShardToBeWrittenMeanwhile(t *testing.T) {
	const timeout = 30 * time.Second
	j := new(atSnapshots)
	s := open(t, j)
	w := own(t, s, 0)
	w.fill(3)
	snapshot := w.put()
	j.before = func() error {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.fill(2)
		}()
		select {
		case <-ended:
			return nil
		case <-time.After(timeout):
			return errors.New("no entry can be written while a snapshot is")
		}
	}
	p, err := s.Publish(t.Context(), w.own, store.SnapshotPointer{}, snapshot)
	if err != nil || len(p.Kept) != 1 || p.Revision <= w.head.Revision {
		t.Errorf("published %+v after revision %d, %v", p, w.head.Revision, err)
	}
	if w.head.Number != 5 {
		t.Errorf("the last entry is %d, want 5", w.head.Number)
	}
}

// What happens while the snapshot is written is looked at before the pointer names it.
func TestPublish_IsFencedByWhatHappensWhileTheSnapshotIsWritten(t *testing.T) {
	for name, happens := range map[string]func(t *testing.T, w *writer) error{
		"TheSessionEnds": func(t *testing.T, w *writer) error { return w.store.Leave(t.Context(), w.own.Session) },
		"AnotherOneOwnsTheShard": func(t *testing.T, w *writer) error {
			next, err := w.store.Join(t.Context(), store.NodeInfo{Name: "next", Reads: written}, time.Hour)
			if err != nil {
				return err
			}
			return w.store.HandOver(t.Context(), w.own, next.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := new(atSnapshots)
			s := open(t, j)
			w := own(t, s, 0)
			w.fill(3)
			before := w.trim(1)
			snapshot := w.put()
			j.before = func() error { return happens(t, w) }
			if p, err := s.Publish(t.Context(), w.own, before, snapshot); !errors.Is(err, store.ErrFenced) {
				t.Errorf("published %+v, %v", p, err)
			}
			p, err := s.Pointer(t.Context(), 0)
			if err != nil || p.Revision != before.Revision {
				t.Errorf("the pointer is %+v, %v; was %+v", p, err, before)
			}
			for _, kept := range before.Kept {
				for part, err := range s.Parts(t.Context(), 0, kept) {
					if err != nil || string(part) != "state" {
						t.Errorf("snapshot %d is %q, %v", kept.Entry, part, err)
					}
				}
			}
		})
	}
}

// late is a journal that begins to read with the entry behind the one that is asked for, as if that had just gone.
type late struct{ memjournal.Journal }

func (j *late) Read(shard int, from uint64) iter.Seq2[journal.Entry, error] {
	return j.Journal.Read(shard, from+1)
}

func TestRead_YieldsNoOtherEntryForOneThatHasJustGone(t *testing.T) {
	s := open(t, new(late))
	w := own(t, s, 0)
	w.fill(3)
	if r, err := s.Entry(t.Context(), 0, 2); !errors.Is(err, store.ErrTrimmed) {
		t.Errorf("entry 2 is %+v, %v", r.Head, err)
	}
	for r, err := range s.Read(t.Context(), 0, 1) {
		if !errors.Is(err, store.ErrTrimmed) {
			t.Errorf("read from entry 1 on: %+v, %v", r.Head, err)
		}
	}
}
