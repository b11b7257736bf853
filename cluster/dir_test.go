package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/cluster"
	"taskledger/engine/embedded"
	"taskledger/internal/advertised"
	"taskledger/internal/connection"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

// timeout bounds everything that is only slow.
const timeout = 2 * time.Minute

// engineTTL is the shortest that nodes accept.
const engineTTL = 3 * time.Second

func startServers(t *testing.T, dir string) *embedded.Servers {
	t.Helper()
	s, err := embedded.StartServers(t.Context(), embedded.ServersConfig{Dir: dir})
	if err == nil {
		err = s.Advertise(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// connected follows whether a bus has a connection.
func connected(t *testing.T, bus store.Bus) <-chan bool {
	t.Helper()
	told := make(chan bool, 100)
	if err := bus.Notify(t.Context(), func(is bool) { told <- is }); err != nil {
		t.Fatal(err)
	}
	return told
}

func await(t *testing.T, told <-chan bool, want bool) {
	t.Helper()
	late := time.After(timeout)
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
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 25)) // so that etcd's socket is not below it
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
	if err := os.Remove(filepath.Join(dir, "socket.dir")); err != nil { // so etcd's socket must go elsewhere, too
		t.Fatal(err)
	}
	if second := startServers(t, dir); strings.HasSuffix(second.NATSURL(), u.Host) || second.EtcdEndpoint() == first.EtcdEndpoint() {
		t.Errorf("NATS is at %s again, or etcd at %s", second.NATSURL(), second.EtcdEndpoint())
	}
	await(t, told, true)
	startNode(t, c)
	submit(t, startClient(t, c))
}

// Another cluster has taken over the directory, with other shards and another key: a process that joined the first
// cluster must not write into it.
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

// Between the death of a node and its next start its port is anybody's.
func TestOpen_OnADirectoryDialsNoPortOfANodeThatDied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	servers := startServers(t, dir)
	var log logLines
	c := open(t, cluster.Config{Dir: dir, Shards: 2, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	told := connected(t, c.Bus)
	await(t, told, true)
	left, err := os.ReadFile(advertised.Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimPrefix(servers.NATSURL(), "nats://")
	if err := servers.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, told, false)
	thief, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan bool, 1)
	go func() {
		conn, err := thief.Accept()
		if err == nil {
			conn.Close()
		}
		came <- err == nil
	}()
	if err := os.WriteFile(advertised.Path(dir), left, 0o600); err != nil { // as after a crash
		t.Fatal(err)
	}
	tried := log.count("cannot connect")
	testcluster.Await(t, "it tries again", func() bool { return log.count("cannot connect") >= tried+2 || len(came) > 0 })
	thief.Close()
	if <-came {
		t.Error("it dialled who holds the port now")
	}
}

// logLines collects log output.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// startOpenServers starts servers whose etcd every user of this machine can write, and advertises them.
func startOpenServers(t *testing.T, dir string) *embedded.Servers {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s, err := embedded.StartServers(t.Context(), embedded.ServersConfig{Dir: dir, EtcdPort: l.Addr().(*net.TCPAddr).Port})
	if err == nil {
		err = s.Advertise(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A node that runs what others must not start is joined before the servers open a port, or after.
func TestOpen_PrivateDoesWithoutServersThatOpenAPortOfEtcd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	servers := startServers(t, dir)
	var log logLines
	c := open(t, cluster.Config{Dir: dir, Shards: 2, Private: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	other := open(t, cluster.Config{Dir: dir})
	told := connected(t, c.Bus)
	await(t, told, true)
	if err := servers.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, told, false)
	servers = startOpenServers(t, dir)
	testcluster.Await(t, "it says why it does not connect", func() bool {
		return log.count("servers refused") == 1 && log.count(servers.EtcdURL()) > 0 && log.count("--etcd-port") > 0
	})
	if _, err := other.Store.ReadMembers(t.Context()); err != nil {
		t.Errorf("who does not mind: %v", err)
	}
	if _, err := c.Store.ReadMembers(within(t, time.Second)); err == nil {
		t.Error("it reads what others can write")
	}
	if _, err := cluster.Open(t.Context(), cluster.Config{Dir: dir, Private: true}); !errors.Is(err, connection.ErrNotPrivate) ||
		errors.Is(err, cluster.ErrNoNode) || !strings.Contains(err.Error(), servers.EtcdURL()) {
		t.Errorf("opened on what others can write: %v", err)
	}
	if len(told) > 0 {
		t.Error("it reached NATS")
	}
	if err := servers.Close(); err != nil {
		t.Fatal(err)
	}
	startServers(t, dir)
	await(t, told, true)
	if _, err := c.Store.ReadMembers(t.Context()); err != nil {
		t.Error(err)
	}
}

// The error must not propose to start a node there: that would fail as well.
func TestOpen_NoDirectoryIsNoNodeThatIsMissing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := cluster.Open(t.Context(), cluster.Config{Dir: file})
	if invalid, is := errors.AsType[*store.InvalidError](err); !is || invalid.Field != "dir" || errors.Is(err, cluster.ErrNoNode) {
		t.Errorf("got %v", err)
	}
}

// The node runs: the error must not propose to start one.
func TestOpen_WithoutTimeSaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startServers(t, dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the time is over")
	cancel(over)
	if _, err := cluster.Open(ctx, cluster.Config{Dir: dir}); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, over) || errors.Is(err, cluster.ErrNoNode) {
		t.Errorf("got %v", err)
	}
}
