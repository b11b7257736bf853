package filejournal_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/journal"
	"taskledger/filestore/journaltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string, o filejournal.Options) *filejournal.Journal {
	t.Helper()
	j, err := filejournal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestJournal_KeepsTheContract(t *testing.T) {
	for _, o := range []filejournal.Options{
		{},
		{Durability: filejournal.Opportunistic},
		{SegmentBytes: 2000}, // many segments
	} {
		t.Run(fmt.Sprint(o.Durability, o.SegmentBytes), func(t *testing.T) {
			in := func(t *testing.T, dir string) journal.Journaler { return opened{open(t, dir, o), dir} }
			journaltest.Run(t, journaltest.Subject{
				Open:  func(t *testing.T) journal.Journaler { return in(t, t.TempDir()) },
				Again: func(t *testing.T, closed journal.Journaler) journal.Journaler { return in(t, closed.(opened).dir) },
			})
		})
	}
}

// opened knows where its files are.
type opened struct {
	*filejournal.Journal
	dir string
}
