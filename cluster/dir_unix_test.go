//go:build unix

package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"taskledger/cluster"
	"taskledger/internal/advertised"
	"taskledger/internal/connection"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

// A dial may begin by what servers advertised that end, and connect to the next ones.
func TestOpen_PrivateLooksAgainOnceItIsConnected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startOpenServers(t, dir)
	advert := advertised.Path(dir)
	later, err := os.ReadFile(advert)
	if err != nil {
		t.Fatal(err)
	}
	var a advertised.Servers
	if err := json.Unmarshal(later, &a); err != nil {
		t.Fatal(err)
	}
	a.Etcd = a.Etcd[:1]
	earlier, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	put := func(fill func(path string) error) error { // each file takes the place of the last one whole
		next := advert + ".next"
		return errors.Join(fill(next), os.Rename(next, advert))
	}
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	file := func(path string) error { return os.WriteFile(path, later, 0o600) }
	if err := put(pipe); err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	go func() {
		var err error
		for _, next := range []func(string) error{pipe, file} { // Open reads the first advert, and its dial the second
			f, failed := os.OpenFile(advert, os.O_WRONLY, 0) // when somebody reads it
			if failed == nil {
				_, failed = f.Write(earlier)
				failed = errors.Join(failed, put(next), f.Close())
			}
			err = errors.Join(err, failed)
		}
		told <- err
	}()
	if _, err := cluster.Open(t.Context(), cluster.Config{Dir: dir, Private: true}); !errors.Is(err, connection.ErrNotPrivate) {
		t.Errorf("opened on what others can write: %v", err)
	}
	select {
	case err := <-told:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(timeout):
		t.Error("nobody reads what was advertised")
	}
}

// Where others may enter the directory of a socket they can connect to it, or put their own in its place.
func TestOpen_PrivateWantsASocketThatOthersDoNotReach(t *testing.T) {
	t.Parallel()
	s := startServers(t, t.TempDir())
	at := []string{s.EtcdEndpoint()}
	socketDir := filepath.Dir(strings.TrimPrefix(at[0], "unix:"))
	mode := func(mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(socketDir, mode); err != nil {
			t.Fatal(err)
		}
	}
	mode(0o710)
	if _, err := cluster.Open(t.Context(), cluster.Config{Etcd: at, Private: true}); !errors.Is(err, connection.ErrNotPrivate) ||
		!strings.Contains(err.Error(), socketDir) {
		t.Errorf("opened by a socket that others may enter: %v", err)
	}
	open(t, cluster.Config{Etcd: at, Shards: 1})
	mode(0o700)
	var log logLines
	open(t, cluster.Config{Etcd: at, Private: true})
	c := open(t, cluster.Config{Etcd: []string{"unix://" + strings.TrimPrefix(at[0], "unix:")}, Private: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(socketDir, 0o755); err != nil { // another user may enter it
		t.Fatal(err)
	}
	testcluster.Await(t, "it says why it does not connect", func() bool { return log.count("servers refused") == 1 && log.count(socketDir) > 0 })
	if _, err := c.Store.ReadMembers(within(t, time.Second)); err == nil {
		t.Error("it reads what others can write")
	}
}

// Root can open what another user serves, who could then run programs as root.
func TestOpen_PrivateWantsADirectoryOfThisUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServers(t, dir)
	open(t, cluster.Config{Dir: dir, Shards: 1, Private: true})
	if os.Geteuid() != 0 {
		return // nobody else can give files away: TestDial_PrivateRefusesServersOfAnotherUser shows the refusal
	}
	const other = 65534
	for _, path := range []string{advertised.Path(dir), filepath.Dir(strings.TrimPrefix(s.EtcdEndpoint(), "unix:"))} {
		if err := os.Chown(path, other, -1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cluster.Open(t.Context(), cluster.Config{Dir: dir, Private: true}); !errors.Is(err, connection.ErrNotPrivate) ||
		!strings.Contains(err.Error(), dir+" is of user 65534") {
		t.Errorf("opened the servers of another user: %v", err)
	}
	open(t, cluster.Config{Dir: dir})
}

func TestOpen_PrivateWaitsForADirectoryOfTheSocket(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end() // the refusal must come before any request
	none := "unix:" + filepath.Join(t.TempDir(), "none", "etcd")
	if _, err := cluster.Open(ended, cluster.Config{Etcd: []string{none}, Private: true}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without a directory: %v", err)
	}
}
