package cluster_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/engine/embedded"
)

// engineTTL is the shortest that nodes accept.
const engineTTL = 3 * time.Second

func startServers(t *testing.T, dir string) *embedded.Servers {
	t.Helper()
	s, err := embedded.StartServers(t.Context(), embedded.ServersConfig{Dir: dir})
	if err == nil {
		err = s.Advertise()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// connected follows whether a bus has a connection.
func connected(t *testing.T, bus engine.Bus) <-chan bool {
	t.Helper()
	told := make(chan bool, 100)
	if err := bus.Notify(t.Context(), func(is bool) { told <- is }); err != nil {
		t.Fatal(err)
	}
	return told
}

func await(t *testing.T, told <-chan bool, want bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case is := <-told:
			if is == want {
				return
			}
		case <-late:
			t.Fatalf("the bus does not tell %t", want)
		}
	}
}

func TestOpen_OnADirectoryFindsServersThatComeBackElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startServers(t, dir)
	c := open(t, cluster.Config{Dir: dir, Shards: 2})
	told := connected(t, c.Bus)
	await(t, told, true)
	u, err := url.Parse(first.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, told, false)
	if _, err := cluster.Open(t.Context(), cluster.Config{Dir: dir}); !errors.Is(err, cluster.ErrNoNode) {
		t.Errorf("opened without servers: %v", err)
	}
	taken, err := net.Listen("tcp", u.Host) // so NATS must go elsewhere
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if second := startServers(t, dir); strings.HasSuffix(second.NATSURL(), u.Host) {
		t.Errorf("NATS is at %s again", second.NATSURL())
	}
	await(t, told, true)
	startNode(t, c)
	submit(t, startClient(t, c))
}

// Another cluster that has come into the same directory has other shards and another key: who joined the first one must
// not write into it.
func TestOpen_OnADirectoryRefusesOtherDataInIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startServers(t, dir)
	c := open(t, cluster.Config{Dir: dir, Shards: 2})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if err := os.RemoveAll(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	startServers(t, dir)
	if _, err := c.Store.ReadMembers(within(t, time.Second)); err == nil {
		t.Error("it reads the other cluster")
	}
	if again := open(t, cluster.Config{Dir: dir}); again.Store.Cluster().ID == c.Store.Cluster().ID {
		t.Error("the other cluster is the same one")
	}
}

// A directory that is gone may have been below the one for temporary files, where anybody can make one of its name.
func TestOpen_OnADirectoryTrustsNoSocketThatOthersMayHaveMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServers(t, dir)
	c := open(t, cluster.Config{Dir: dir, Shards: 2})
	socketDir := filepath.Dir(strings.TrimPrefix(s.EtcdEndpoint(), "unix:"))
	if err := os.Chmod(socketDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Open(t.Context(), cluster.Config{Dir: dir}); !errors.Is(err, cluster.ErrNoNode) || !strings.Contains(err.Error(), socketDir) {
		t.Errorf("opened by a socket that others may enter: %v", err)
	}
	if err := os.Chmod(socketDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Store.ReadMembers(t.Context()); err != nil {
		t.Error(err)
	}
	open(t, cluster.Config{Dir: dir})
}

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
