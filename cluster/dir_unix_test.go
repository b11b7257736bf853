//go:build unix

package cluster_test

import (
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"taskledger/cluster"
)

// A dial may begin by what servers advertised that end, and connect to the next ones.
func TestOpen_PrivateLooksAgainOnceItIsConnected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startOpenServers(t, dir)
	advert := cluster.AdvertisedIn(dir)
	later, err := os.ReadFile(advert)
	if err != nil {
		t.Fatal(err)
	}
	var a cluster.Advertised
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
		for _, next := range []func(string) error{pipe, file} { // what is read to open, and what that dial begins by
			f, failed := os.OpenFile(advert, os.O_WRONLY, 0) // when somebody reads it
			if failed == nil {
				_, failed = f.Write(earlier)
				failed = errors.Join(failed, put(next), f.Close())
			}
			err = errors.Join(err, failed)
		}
		told <- err
	}()
	if _, err := cluster.Open(t.Context(), cluster.Config{Dir: dir, Private: true}); !errors.Is(err, cluster.ErrNotPrivate) {
		t.Errorf("opened on what others can write: %v", err)
	}
	select {
	case err := <-told:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("nobody reads what was advertised")
	}
}
