package filestore_test

import (
	"testing"

	"go.uber.org/goleak"

	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/journal"
	"taskledger/filestore/memjournal"
	"taskledger/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open makes a store of a new journaler.
func open(t *testing.T, j journal.Journaler) *filestore.Store {
	t.Helper()
	s, err := filestore.New(j, filestore.Config{Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func files(t *testing.T, o filejournal.Options) *filejournal.Journal {
	t.Helper()
	j, err := filejournal.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func TestStore_OnAnyJournalerKeepsTheContract(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *filestore.Store{
		"Memory": func(t *testing.T) *filestore.Store { return open(t, new(memjournal.Journal)) },
		"Strict": func(t *testing.T) *filestore.Store { return open(t, files(t, filejournal.Options{})) },
		"Opportunistic": func(t *testing.T) *filestore.Store {
			return open(t, files(t, filejournal.Options{Durability: filejournal.Opportunistic}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.RunWithoutStrays(t, func(t *testing.T) storetest.Fixture {
				s := open(t)
				return storetest.Fixture{A: s, B: s}
			})
		})
	}
}
