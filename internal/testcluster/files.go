package testcluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/store/membus"
)

// verifiedWithin bounds the verification of a directory, on a slow and busy machine.
const verifiedWithin = 5 * time.Minute

// onFiles holds the names of the tests whose clusters have their store in files.
var onFiles sync.Map

// OnFiles lets the clusters that a test makes from now on, and its subtests, have their store in files of a directory,
// where an entry is answered once it is synced, and a bus in memory. They have neither Etcd nor NATS nor an Endpoint.
// When such a cluster ends, its directory is verified as it lies there.
func OnFiles(t testing.TB) {
	t.Helper()
	name := t.Name()
	onFiles.Store(name, nil)
	t.Cleanup(func() { onFiles.Delete(name) })
}

// isOnFiles reports whether OnFiles was called for a test, or for one around it.
func isOnFiles(t testing.TB) bool {
	for name := t.Name(); ; {
		if _, is := onFiles.Load(name); is {
			return true
		}
		end := strings.LastIndexByte(name, '/')
		if end < 0 {
			return false
		}
		name = name[:end]
	}
}

// onServers holds the names of the tests that OnServers returns.
var onServers sync.Map

// noteServers notes a test whose cluster is about to have servers, though its options are not of servers alone.
func noteServers(t testing.TB) {
	name, _, _ := strings.Cut(t.Name(), "/")
	onServers.Store(name, nil)
}

// OnServers returns the names of the tests of this process that made a cluster on servers whose options are good for
// one on files as well.
func OnServers() (names []string) {
	for name := range onServers.Range {
		names = append(names, name.(string))
	}
	slices.Sort(names)
	return names
}

// files are the store and the bus of a cluster in files, which all of its members share.
type files struct {
	dir   string
	store *filestore.Store
	bus   *membus.Bus

	mu       sync.Mutex
	sessions map[string]store.Session
}

func newFiles(t testing.TB, shards int) *files {
	t.Helper()
	f := &files{dir: t.TempDir(), bus: membus.New(), sessions: map[string]store.Session{}}
	var err error
	f.store, err = filestore.Open(f.dir, filestore.Config{Shards: shards}, filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// fileMember is the store as one member has it.
type fileMember struct {
	*filestore.Store
	of *files
}

// Join implements store.Sessions.
func (m fileMember) Join(ctx context.Context, info store.NodeInfo, ttl time.Duration) (store.Session, error) {
	s, err := m.Store.Join(ctx, info, ttl)
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	m.of.sessions[s.ID] = s
	return s, err
}

// endSession ends a session, as it would end after its TTL.
func (f *files) endSession(ctx context.Context, id string) error {
	f.mu.Lock()
	s := f.sessions[id]
	f.mu.Unlock()
	return f.store.Leave(ctx, s)
}

// close ends the use of the directory.
func (f *files) close() error { return errors.Join(f.bus.Close(), f.store.Close()) }

// verify verifies the journals in the directory, which nobody uses any more.
func (f *files) verify(t testing.TB) {
	t.Helper()
	s, err := filestore.OpenToRead(f.dir, "")
	if err != nil {
		t.Error(err)
		return
	}
	revision := func(ctx context.Context) (int64, error) {
		members, err := s.ReadMembers(ctx)
		return members.Revision, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), verifiedWithin)
	defer cancel()
	reader := ledger.New(ledger.Config{
		Cluster:   s.Cluster(),
		Journal:   s,
		Snapshots: s,
		Revision:  revision,
	})
	all, err := reader.Verify(ctx, ledger.VerifyOptions{})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Errorf("verify %s: %v", f.dir, err)
	}
	for _, v := range all {
		if v.Problem != "" {
			t.Errorf("verify %s: shard %d: %s", f.dir, v.Shard, v.Problem)
		}
	}
}
