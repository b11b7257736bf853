package embedded_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/internal/advertised"
	"taskledger/internal/testkit"
)

// startOnly names the directory on which this process, started again by a test, starts servers, and that is all.
const startOnly = "START_SERVERS_ON"

func TestMain(m *testing.M) {
	if dir := os.Getenv(startOnly); dir != "" {
		if _, err := embedded.StartServers(context.Background(), embedded.ServersConfig{Dir: dir}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testkit.AtOnce(4)
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, cfg embedded.ServersConfig) *embedded.Servers {
	t.Helper()
	s, err := embedded.StartServers(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func put(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := c.Put(t.Context(), key, value); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func get(t *testing.T, c *clientv3.Client, key string) string {
	t.Helper()
	r, err := c.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	if len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
}

// dial connects to etcd as another process would.
func dial(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	c, err := etcdstore.NewClient(t.Context(), etcdstore.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestServers_InProcessAndOutsideClientsShareOneEtcd(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.ServersConfig{})
	put(t, s.EtcdClient(), "k", "v")
	if got := get(t, dial(t, s.EtcdEndpoint()), "k"); got != "v" {
		t.Errorf("outside client read %q", got)
	}
}

func TestServers_RestartOnTheSameDirKeepsDataPortAndKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, embedded.ServersConfig{Dir: dir})
	put(t, first.EtcdClient(), "k", "v")
	at, seed := first.NATSURL(), read(t, first.NATSNKey())
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, embedded.ServersConfig{Dir: dir})
	if got := get(t, second.EtcdClient(), "k"); got != "v" {
		t.Errorf("read %q after a restart", got)
	}
	if second.NATSURL() != at || read(t, second.NATSNKey()) != seed {
		t.Errorf("NATS is at %s after %s, or asks for another key", second.NATSURL(), at)
	}
	put(t, dial(t, second.EtcdEndpoint()), "k", "w")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// greeting is the first thing a NATS server says, with a challenge.
const greeting = `INFO {"server_id":"x","version":"2.15.0","headers":true,"max_payload":1048576,"auth_required":true,"nonce":"bm9uY2U"}` + "\r\n"

// Whoever takes the port while the servers are away hears nothing that lets him in, and the next start gets out of
// his way.
func TestServers_WhoHoldsThePortOfNATSLearnsNothing(t *testing.T) {
	t.Parallel()
	var dir, at, seed string
	var port int
	var thief net.Listener
	for thief == nil { // another test may have the port first
		dir = t.TempDir()
		first := start(t, embedded.ServersConfig{Dir: dir})
		at, seed = first.NATSURL(), read(t, first.NATSNKey())
		port = portOf(t, at)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		thief, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
	defer thief.Close()
	heard := make(chan string, 1)
	go func() {
		conn, err := thief.Accept()
		if err != nil {
			heard <- err.Error()
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte(greeting))
		line, _ := bufio.NewReader(conn).ReadString('\n')
		heard <- line
	}()
	conn, err := nats.Connect(at, nkeyIn(t, filepath.Join(dir, "nats.nk")), nats.Timeout(5*time.Second))
	if err == nil {
		conn.Close()
	}
	if line := <-heard; !strings.HasPrefix(line, "CONNECT ") || !strings.Contains(line, `"sig"`) || strings.Contains(line, seed) {
		t.Errorf("heard %s", line)
	}
	second := start(t, embedded.ServersConfig{Dir: dir})
	if portOf(t, second.NATSURL()) == port {
		t.Errorf("still on port %d", port)
	}
}

func nkeyIn(t *testing.T, path string) nats.Option {
	t.Helper()
	option, err := nats.NkeyOptionFromSeed(path)
	if err != nil {
		t.Fatal(err)
	}
	return option
}

func nkey(t *testing.T, s *embedded.Servers) nats.Option {
	t.Helper()
	return nkeyIn(t, s.NATSNKey())
}

func TestServers_DirIsForOneAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, embedded.ServersConfig{Dir: dir})
	if err := s.Advertise(nil); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.StartServers(t.Context(), embedded.ServersConfig{Dir: dir})
	if !errors.Is(err, embedded.ErrDirInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second start: %v", err)
	}
	if _, err := advertised.Read(dir); err != nil {
		t.Errorf("a refused start withdrew the addresses: %v", err)
	}
	put(t, s.EtcdClient(), "k", "v")
}

func TestServers_ListenWhereNoOtherMachineComes(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.ServersConfig{})
	if u, err := url.Parse(s.NATSURL()); err != nil || u.Hostname() != "127.0.0.1" || u.Port() == "0" || u.Port() == "" {
		t.Errorf("NATS listens on %s, %v", s.NATSURL(), err)
	}
	if listening := s.EtcdListeners(); len(listening) != 1 || listening[0].Network() != "unix" || s.EtcdURL() != "" {
		t.Errorf("etcd listens on %v, and says %q", listening, s.EtcdURL())
	}
}

func TestServers_NATSLetsInWhoHasTheKey(t *testing.T) {
	t.Parallel()
	s, other := start(t, embedded.ServersConfig{}), start(t, embedded.ServersConfig{})
	for what, option := range map[string]nats.Option{"no key": nats.Name("x"), "another key": nkey(t, other), "a token": nats.Token("x")} {
		if conn, err := nats.Connect(s.NATSURL(), option); !errors.Is(err, nats.ErrAuthorization) {
			conn.Close()
			t.Errorf("connected with %s: %v", what, err)
		}
	}
	for _, opts := range [][]nats.Option{nil, {nats.InProcessServer(s.NATSInProcess())}} {
		conn, err := nats.Connect(s.NATSURL(), append(opts, nkey(t, s))...)
		if err != nil {
			t.Fatalf("connect: %v", err)
		}
		if conn.MaxPayload() != 1<<20 {
			t.Errorf("max payload is %d", conn.MaxPayload())
		}
		conn.Close()
	}
}

func TestServers_AdvertisedUntilClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, embedded.ServersConfig{Dir: dir})
	if _, err := advertised.Read(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("read before anything was advertised: %v", err)
	}
	if err := s.Advertise(nil); err != nil {
		t.Fatal(err)
	}
	a, err := advertised.Read(dir)
	if err != nil || len(a.Etcd) != 1 || a.Etcd[0] != s.EtcdEndpoint() || a.NATS != s.NATSURL() || a.NKey != s.NATSNKey() || a.Data == "" {
		t.Errorf("advertised %+v, %v", a, err)
	}
	for _, name := range []string{"cluster.json", "nats.nk", "nats-port"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	s.Close()
	if _, err := advertised.Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still advertised after Close: %v", err)
	}
}

func TestServers_StartVoidsWhatAKilledProcessAdvertised(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), []byte(`{"etcd":["http://127.0.0.1:1"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, embedded.ServersConfig{Dir: dir, NoNATS: true})
	if a, err := advertised.Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("advertised %+v, %v", a, err)
	}
}

func TestServers_TemporaryDirIsRemoved(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.ServersConfig{})
	if _, err := os.Stat(s.Dir()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory is still there: %v", err)
	}
}

func TestServers_WithoutNATS(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.ServersConfig{NoNATS: true})
	if s.NATSURL() != "" || s.NATSInProcess() != nil {
		t.Errorf("NATS at %q", s.NATSURL())
	}
}

func TestServers_FixedPortsAreKept(t *testing.T) {
	probe := start(t, embedded.ServersConfig{EtcdPort: freePort(t)})
	etcdPort, natsPort := portOf(t, probe.EtcdURL()), portOf(t, probe.NATSURL())
	probe.Close()
	var log bytes.Buffer
	s := start(t, embedded.ServersConfig{EtcdPort: etcdPort, NATSPort: natsPort, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if portOf(t, s.EtcdURL()) != etcdPort || portOf(t, s.NATSURL()) != natsPort {
		t.Errorf("listens on %s and %s, want ports %d and %d", s.EtcdURL(), s.NATSURL(), etcdPort, natsPort)
	}
	put(t, dial(t, s.EtcdURL()), "k", "v")
	if got := get(t, dial(t, s.EtcdEndpoint()), "k"); got != "v" {
		t.Errorf("read %q by way of the socket", got)
	}
	if !strings.Contains(log.String(), "every user of this machine") {
		t.Errorf("nothing says that etcd is open: %s", log.String())
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func portOf(t *testing.T, raw string) int {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := net.ResolveTCPAddr("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	return addr.Port
}

func TestServers_PortTakenIsAnErrorThatLeavesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken, dir := l.Addr().(*net.TCPAddr).Port, t.TempDir()
	for _, cfg := range []embedded.ServersConfig{{Dir: dir, NATSPort: taken}, {Dir: dir, EtcdPort: taken}} {
		if s, err := embedded.StartServers(t.Context(), cfg); err == nil {
			s.Close()
			t.Errorf("started on a port that is taken: %+v", cfg)
		} else if !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("started on a port that is taken: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "etcd")); cfg.NATSPort == taken && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("etcd was started, although NATS could not: %v", err)
		}
	}
	start(t, embedded.ServersConfig{Dir: dir})
}

func TestServers_EndedContextStopsTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := embedded.StartServers(ctx, embedded.ServersConfig{}); !errors.Is(err, context.Canceled) {
		s.Close()
		t.Errorf("started with an ended context: %v", err)
	}
}

func TestServers_CloseDoesNotWaitForWatchers(t *testing.T) {
	s := start(t, embedded.ServersConfig{NoNATS: true})
	outside := dial(t, s.EtcdEndpoint())
	for _, c := range []*clientv3.Client{outside, s.EtcdClient()} {
		watch := c.Watch(t.Context(), "k", clientv3.WithCreatedNotify())
		if r := <-watch; !r.Created {
			t.Fatalf("watch: %v", r.Err())
		}
	}
	begin := time.Now()
	s.Close()
	if took := time.Since(begin); took > s.EtcdWaitsForWatchers()*3/4 {
		t.Errorf("closing took %s", took)
	}
}

// damage changes a file of etcd's from the given byte on.
func damage(t *testing.T, pattern string, from int) {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: found %v, %v", pattern, found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < len(data) && i < 1<<16; i += 3 {
		data[i] ^= 0xff
	}
	if err := os.WriteFile(found[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestServers_DamagedDataEndsTheStartNamingTheDir(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file string
		from int
	}{{"wal/*.wal", 0}, {"wal/*.wal", 40}, {"snap/db", 0}} {
		t.Run(fmt.Sprint(c.file, " from ", c.from), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := start(t, embedded.ServersConfig{Dir: dir, NoNATS: true})
			put(t, s.EtcdClient(), "k", "v")
			s.Close()
			damage(t, filepath.Join(dir, "etcd", "member", c.file), c.from)
			// In a process of its own: etcd may give up in a goroutine that nobody can recover.
			again := exec.Command(os.Args[0])
			again.Env = append(os.Environ(), startOnly+"="+dir)
			out, err := again.CombinedOutput()
			if err == nil || !strings.Contains(string(out), dir) {
				t.Errorf("start on damaged data: %v\n%s", err, out)
			}
		})
	}
}

// A process that starts another one shares its locks with it for a moment. Such a lock may outlive the servers that
// held it.
func TestServers_LockThatOutlivesThemIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := fileutil.LockFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	time.AfterFunc(50*time.Millisecond, func() { released <- held.Close() })
	start(t, embedded.ServersConfig{Dir: dir, NoNATS: true})
	if err := <-released; err != nil {
		t.Fatal(err)
	}
}

func TestInUse_SaysWhetherServersRunOnADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if embedded.InUse(dir) {
		t.Error("before any ran there it is in use")
	}
	s := start(t, embedded.ServersConfig{Dir: dir, NoNATS: true})
	if !embedded.InUse(dir) {
		t.Error("while servers run there it is not in use")
	}
	if err := s.Close(); err != nil || embedded.InUse(dir) {
		t.Errorf("after their end it is in use, %v", err)
	}
}
