package memjournal_test

import (
	"errors"
	"testing"

	"taskledger/filestore/journal"
	"taskledger/filestore/journaltest"
	"taskledger/filestore/memjournal"
)

func TestJournal_KeepsTheContract(t *testing.T) {
	journaltest.Run(t, journaltest.Subject{Open: func(*testing.T) journal.Journaler { return new(memjournal.Journal) }})
}

func TestJournal_TakesNoWriteOnceItIsClosed(t *testing.T) {
	j := new(memjournal.Journal)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(journal.Entry{Number: 1}); !errors.Is(err, memjournal.ErrClosed) {
		t.Errorf("append: %v, want %v", err, memjournal.ErrClosed)
	}
	if err := j.WriteSnapshot(journal.Key{}, journal.Snapshot{}); !errors.Is(err, memjournal.ErrClosed) {
		t.Errorf("write a snapshot: %v, want %v", err, memjournal.ErrClosed)
	}
}
