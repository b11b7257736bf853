package filestore_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/memjournal"
	"taskledger/store"
	"taskledger/store/storetest"
)

var copied = store.Cluster{ID: "abcdefghijklmnop", Shards: 2, Key: []byte("0123456789abcdef0123456789abcdef")}

func TestReceiver_OnAnyJournalerKeepsTheContract(t *testing.T) {
	for name, durability := range map[string]filejournal.Durability{
		"Strict":        filejournal.Strict,
		"Opportunistic": filejournal.Opportunistic,
	} {
		t.Run(name, func(t *testing.T) {
			storetest.RunReceiver(t, func(t *testing.T) storetest.ReceiverFixture {
				return inFiles(t, filejournal.Options{Durability: durability})
			})
		})
	}
	t.Run("Memory", func(t *testing.T) {
		storetest.RunReceiver(t, func(*testing.T) storetest.ReceiverFixture {
			j := new(memjournal.Journal)
			return storetest.ReceiverFixture{
				Receive: func(_ context.Context, c store.Cluster) (store.Receiver, error) {
					return orNil(filestore.ReceiveIn(j, c, "a test"))
				},
				Open: func(context.Context) (store.Store, error) {
					s, err := filestore.New(j, filestore.Config{})
					if err != nil {
						return nil, err
					}
					return s, nil
				},
			}
		})
	})
}

// orNil makes no interface of a nil pointer.
func orNil(r *filestore.Receiver, err error) (store.Receiver, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// inFiles is a fixture in a directory that is not there, which one receiver or store at a time has open.
func inFiles(t *testing.T, o filejournal.Options) storetest.ReceiverFixture {
	dir := filepath.Join(t.TempDir(), "copy")
	end := func() error { return nil }
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return storetest.ReceiverFixture{
		Receive: func(_ context.Context, c store.Cluster) (store.Receiver, error) {
			if err := end(); err != nil {
				return nil, err
			}
			r, err := filestore.Receive(dir, c, "a test", o)
			if err != nil {
				end = func() error { return nil }
				return nil, err
			}
			end = r.Close
			return r, nil
		},
		Open: func(context.Context) (store.Store, error) {
			before := end
			end = func() error { return nil }
			if err := before(); err != nil {
				return nil, err
			}
			s, err := filestore.Open(dir, filestore.Config{}, filejournal.Options{})
			if err != nil {
				return nil, err
			}
			end = s.Close
			return s, nil
		},
	}
}

func TestReceive_RefusesADirectoryWithSomethingElseAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := filestore.Receive(dir, copied, "a test", filejournal.Options{})
	if !errors.Is(err, store.ErrTaken) || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("error is %v", err)
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) != 1 {
		t.Errorf("there is %v, %v", there, err)
	}
	gone := filepath.Join(dir, "gone")
	if _, err := filestore.Receive(gone, copied, "a test", filejournal.Options{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is made before the copy begins: %v", err)
	}
}

func TestReceive_RefusesADirectoryInUseAndAnotherStore(t *testing.T) {
	dir := t.TempDir()
	s, err := filestore.Open(dir, filestore.Config{}, filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filestore.Receive(dir, copied, "a test", filejournal.Options{}); !errors.Is(err, filejournal.ErrInUse) {
		t.Errorf("in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := filestore.Receive(dir, copied, "a test", filejournal.Options{}); !errors.Is(err, store.ErrTaken) {
		t.Errorf("of another cluster: %v", err)
	}
}

func TestOpen_NamesACopyThatIsNotFinished(t *testing.T) {
	dir := t.TempDir()
	r, err := filestore.Receive(dir, copied, "etcd at etcd-1:2379", filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Begin(t.Context()), r.Close()); err != nil {
		t.Fatal(err)
	}
	_, written := filestore.Open(dir, filestore.Config{}, filejournal.Options{})
	_, read := filestore.OpenToRead(dir, "")
	_, other := filestore.OpenToCopy(dir, "")
	for _, err := range []error{written, read, other} {
		const want = "copy of cluster abcdefghijklmnop from etcd at etcd-1:2379 not finished: run copy again"
		if !errors.Is(err, store.ErrUnfinished) || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v", err)
		}
	}
}

func TestOpenToCopy_RefusesWhatOnlyANodeCanSettle(t *testing.T) {
	dir := t.TempDir()
	o := filejournal.Options{Durability: filejournal.Opportunistic, Boot: "before"}
	s, err := filestore.Open(dir, filestore.Config{}, o)
	if err != nil {
		t.Fatal(err)
	}
	crashed := t.TempDir() // the directory as it is while the store is open, on a machine that was started anew
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := filestore.OpenToCopy(crashed, ""); !errors.Is(err, filestore.ErrUnsettled) {
		t.Errorf("after a crash of the machine: %v", err)
	}
	sound, err := filestore.OpenToCopy(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := sound.Close(); err != nil {
		t.Error(err)
	}
}

// Its snapshots were given up, and with them what tells the journal which entries may be missing.
func TestReceiver_MakesAStoreOfAShardThatWasTrimmedAndHasNoSnapshot(t *testing.T) {
	dir := t.TempDir()
	r, err := filestore.Receive(dir, copied, "a test", filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	entries := []store.Record{
		{Head: store.Head{Number: 5, Revision: 50}, Data: []byte("five")},
		{Head: store.Head{Number: 6, Revision: 60}, Data: []byte("six")},
	}
	if err := errors.Join(
		r.Begin(t.Context()),
		r.AddShard(t.Context(), 0, store.ReceivedShard{First: 5}, nil),
		r.AddEntries(t.Context(), 0, entries),
		r.AddShard(t.Context(), 1, store.ReceivedShard{}, nil),
		r.Finish(t.Context(), 1000, store.Reads{}),
		r.Close(),
	); err != nil {
		t.Fatal(err)
	}
	s, err := filestore.Open(dir, filestore.Config{}, filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := s.First(t.Context(), 0); err != nil || first != 5 || s.Last(0).Number != 6 {
		t.Errorf("there are entries %d to %d, %v", first, s.Last(0).Number, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
