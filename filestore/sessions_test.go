package filestore_test

import (
	"testing"
	"time"

	"taskledger/filestore/memjournal"
	"taskledger/store"
)

func revision(t *testing.T, s store.Store) int64 {
	t.Helper()
	m, err := s.ReadMembers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m.Revision
}

func TestRaise_OfWhatIsRaisedAlreadyGivesNoRevision(t *testing.T) {
	s := open(t, new(memjournal.Journal))
	if err := s.Raise(t.Context(), written); err != nil {
		t.Fatal(err)
	}
	before := revision(t, s)
	for range 3 {
		if err := s.Raise(t.Context(), written); err != nil {
			t.Fatal(err)
		}
	}
	if after := revision(t, s); after != before {
		t.Errorf("the revision is %d, and was %d before", after, before)
	}
	if err := s.Raise(t.Context(), store.Reads{Kind: written.Kind + 1}); err != nil {
		t.Fatal(err)
	}
	if after := revision(t, s); after != before+1 {
		t.Errorf("a raise of more has revision %d, and %d came before", after, before)
	}
}

// A revision that was never reserved is given again by the next process.
func TestRaise_GivesNoRevisionThatIsNotReserved(t *testing.T) {
	j := new(memjournal.Journal)
	s := open(t, j)
	s.GiveRevisions(s.GiveRevisions(0))
	if err := s.Raise(t.Context(), written); err != nil {
		t.Fatal(err)
	}
	given := revision(t, s)
	if left := s.GiveRevisions(0); left < 0 {
		t.Errorf("%d revisions are given that were not reserved", -left)
	}
	session, err := open(t, j).Join(t.Context(), store.NodeInfo{Name: "node", Reads: written}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if session.Revision <= given {
		t.Errorf("the next process gives revision %d, and %d was given before", session.Revision, given)
	}
}
