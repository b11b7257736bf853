package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"google.golang.org/grpc"

	"taskledger/etcdstore"
	"taskledger/internal/advertised"
)

// ServersConfig says where the servers of one process keep their data and listen. The zero value works.
type ServersConfig struct {
	Dir      string       // data; default: a temporary directory that Close removes
	NoNATS   bool         // etcd only
	EtcdPort int          // opens etcd on 127.0.0.1, too, to every user of this machine; default: none
	NATSPort int          // on 127.0.0.1; default: that of the last start on Dir if it is free, else a free one
	Log      *slog.Logger // gets what the servers call errors; default: slog.Default()

	// NATSConnections bounds the connections that NATS takes at once, 1 or more; default 1,024. Connections without
	// credentials take no other files of the process.
	NATSConnections int

	// ID is the id that the cluster must have, as in etcdstore.Config. Default: any.
	ID string
	// New lets Connect create a cluster also where NATS holds the archive of another one of its name. Default:
	// Connect returns cluster.ErrArchived there.
	New bool

	// GaveUp is called when etcd has started and cannot go on, as when its disk is full, before it panics in a
	// goroutine of its own: it may end the process in another way. Default: none.
	GaveUp func(problem string)
}

// Servers is one etcd member and one NATS server with JetStream inside this process, for the user who runs it. What
// either acknowledges is on disk. etcd listens on a Unix socket in a directory that no other user may enter; it
// asks for nothing, so that with EtcdPort every user of this machine can read and write it. NATS listens on
// 127.0.0.1 alone and lets in who can sign with an nkey, whose seed lies in the directory, readable by the user
// alone: whoever holds the port instead learns nothing. Its methods may be called concurrently.
type Servers struct {
	dir       string
	temporary bool
	expected  string // id of the clusters to connect to; "" = any
	fresh     bool   // a cluster may be created beside the archive of another one
	socket    string // etcd's, in a directory of its own
	etcdURL   string // "" = not on TCP
	lock      *fileutil.LockedFile
	etcd      *embed.Etcd
	closing   atomic.Bool
	started   atomic.Bool
	grpc      atomic.Pointer[grpc.Server] // etcd's, once it serves
	client    *clientv3.Client
	nats      *server.Server // nil without NATS
	member    string         // the public part of the nkey; it names the data, too
	close     func() error
}

// ErrDirInUse reports that another process, or another Servers in this one, runs on the directory.
var ErrDirInUse = errors.New("directory is in use")

// ErrStoreInFiles reports a directory that holds a store in files, as package local makes one.
var ErrStoreInFiles = errors.New("directory holds a store in files")

// StartServers starts the servers and returns when both can be used; ctx bounds the start only. Data of an earlier
// start in the same directory is there again. It wraps ErrDirInUse, naming the directory. After an error nothing
// runs, except that etcd may give up half-way on damaged data: the process should then end. Where etcd gives up
// later, or in a goroutine of its own, it panics, naming the file.
func StartServers(ctx context.Context, cfg ServersConfig) (*Servers, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	s := &Servers{
		dir:       cfg.Dir,
		temporary: cfg.Dir == "",
		expected:  cfg.ID,
		fresh:     cfg.New,
	}
	s.close = sync.OnceValue(s.stop)
	if err := s.start(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("start servers: %w", err), s.Close())
	}
	s.started.Store(true)
	return s, nil
}

// gaveUp leaves what ends the start to the error of StartServers.
func (s *Servers) gaveUp(tell func(problem string)) func(problem string) {
	return func(problem string) {
		if tell != nil && s.started.Load() {
			tell(problem)
		}
	}
}

func (s *Servers) start(ctx context.Context, cfg ServersConfig) (err error) {
	if err := s.occupy(ctx); err != nil {
		return err
	}
	if s.member, err = readSeed(filepath.Join(s.dir, seedFile)); err != nil {
		return err
	}
	if s.socket, err = advertised.MakeSocketDir(s.dir, "etcd"); err != nil {
		return err
	}
	// NATS is first: it starts at once, or finds its port taken before etcd has written anything.
	if err := s.startBus(cfg); err != nil {
		return fmt.Errorf("NATS in %s: %w", s.dir, err)
	}
	return s.startStore(ctx, cfg)
}

func (s *Servers) startStore(ctx context.Context, cfg ServersConfig) (err error) {
	if cfg.EtcdPort != 0 {
		s.etcdURL = "http://" + net.JoinHostPort(loopback, strconv.Itoa(cfg.EtcdPort))
		cfg.Log.WarnContext(ctx, "etcd listens on TCP: every user of this machine can read and write it",
			"url", s.etcdURL)
	}
	log := zapInto(cfg.Log, &s.closing, s.gaveUp(cfg.GaveUp))
	s.etcd, err = startEtcd(ctx, filepath.Join(s.dir, "etcd"), s.socket, cfg.EtcdPort, log, &s.closing, s.grpc.Store)
	if err != nil {
		return fmt.Errorf("etcd in %s: %w", s.dir, err)
	}
	s.client = v3client.New(s.etcd.Server)
	s.client.Watcher = &apart{Watcher: s.client.Watcher}
	return nil
}

func (s *Servers) startBus(cfg ServersConfig) (err error) {
	if cfg.NoNATS {
		return nil
	}
	port := cfg.NATSPort
	if port == 0 {
		port = natsPort(s.dir)
	}
	streams := filepath.Join(s.dir, "nats")
	if err := os.MkdirAll(streams, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	connections := cmp.Or(cfg.NATSConnections, natsConnections)
	s.nats, err = startNATS(streams, port, connections, s.member, cfg.Log)
	if errors.Is(err, syscall.EADDRINUSE) && cfg.NATSPort == 0 { // after it was found free
		s.nats, err = startNATS(streams, server.RANDOM_PORT, connections, s.member, cfg.Log)
	}
	if err != nil {
		return err
	}
	return rememberPort(s.dir, s.nats.Addr().(*net.TCPAddr).Port)
}

// lockFile is the file that whoever runs on a directory has locked.
const lockFile = "lock"

// formatOfFiles is a file that each store in files has, and no other directory.
const formatOfFiles = "format"

// occupy makes the directory and locks it. What a killed process advertised there is void.
func (s *Servers) occupy(ctx context.Context) (err error) {
	if s.temporary {
		s.dir, err = os.MkdirTemp("", "taskledger-")
	} else if _, missing := os.Stat(filepath.Join(s.dir, formatOfFiles)); missing == nil {
		return fmt.Errorf("%s: %w", s.dir, ErrStoreInFiles)
	} else {
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err == nil {
		s.dir, err = filepath.Abs(s.dir)
	}
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := advertised.CheckClosed(s.dir); err != nil {
		return err
	}
	if s.lock, err = lock(ctx, filepath.Join(s.dir, lockFile)); errors.Is(err, fileutil.ErrLocked) {
		return fmt.Errorf("%s: %w", s.dir, ErrDirInUse)
	}
	if err != nil {
		return fmt.Errorf("lock directory: %w", err)
	}
	return advertised.Withdraw(s.dir)
}

const (
	// lockWithin bounds the wait for a lock that its holder has closed: a process that this one starts shares its
	// locks until it has replaced its memory.
	lockWithin = time.Second
	lockPause  = 10 * time.Millisecond
)

// lock locks a file, or returns fileutil.ErrLocked when it stays locked.
func lock(ctx context.Context, path string) (*fileutil.LockedFile, error) {
	for end := time.Now().Add(lockWithin); ; {
		file, err := fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if !errors.Is(err, fileutil.ErrLocked) || time.Now().After(end) {
			return file, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPause):
		}
	}
}

// Dir returns the directory of the data.
func (s *Servers) Dir() string { return s.dir }

// EtcdEndpoint returns where another process of this user reaches etcd: unix:PATH, as etcdstore.Config takes it.
func (s *Servers) EtcdEndpoint() string { return "unix:" + s.socket }

// SocketPath returns the path for a further socket of the given name, in the directory of etcd's socket, which only
// the user can enter and each start makes anew.
func (s *Servers) SocketPath(name string) string { return filepath.Join(filepath.Dir(s.socket), name) }

func (s *Servers) etcdEndpoints() []string {
	if s.etcdURL == "" {
		return []string{s.EtcdEndpoint()}
	}
	return []string{s.EtcdEndpoint(), s.etcdURL}
}

// EtcdURL returns where every user of this machine reaches etcd; "" without EtcdPort.
func (s *Servers) EtcdURL() string { return s.etcdURL }

// EtcdClient returns a client that reaches etcd within the process. Servers.Close closes it. Its Maintenance cannot
// defragment: use a client of EtcdEndpoint for that.
func (s *Servers) EtcdClient() *clientv3.Client { return s.client }

// defragment gives unused bytes of etcd's file back. It dials for it: the client within the process cannot.
func (s *Servers) defragment(ctx context.Context) error {
	client, err := etcdstore.NewClient(ctx, etcdstore.Config{Endpoints: []string{s.EtcdEndpoint()}})
	if err != nil {
		return err
	}
	_, err = client.Defragment(ctx, client.Endpoints()[0])
	return errors.Join(err, client.Close())
}

// NATSURL returns the address for NATS clients of other processes, which need NATSNKey, too; "" without NATS. A
// client within the process uses both together with NATSInProcess.
func (s *Servers) NATSURL() string {
	if s.nats == nil {
		return ""
	}
	return "nats://" + s.nats.Addr().String()
}

// NATSNKey returns the path of the file that holds the seed of the nkey that NATS asks for; "" without NATS.
func (s *Servers) NATSNKey() string {
	if s.nats == nil {
		return ""
	}
	return filepath.Join(s.dir, seedFile)
}

// NATSInProcess returns the way to reach NATS without a socket, as natsbus.Config.InProcess takes it; nil without
// NATS.
func (s *Servers) NATSInProcess() nats.InProcessConnProvider {
	if s.nats == nil {
		return nil
	}
	return s.nats
}

// Close stops the servers, cutting off every client, and waits until they are gone. What a stopped client had written
// is on disk. Calls after the first return what it returned.
func (s *Servers) Close() error { return s.close() }

// stop undoes start, as far as it came. The lock goes last: whoever gets it finds nothing running.
func (s *Servers) stop() error {
	var errs []error
	s.closing.Store(true)
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}
	if s.etcd != nil {
		_ = s.client.Close() // always an error: a client without a connection tells that its context ended
		if serving := s.grpc.Load(); serving != nil {
			serving.Stop() // etcd would wait seconds for watchers outside
		}
		s.etcd.Close()
	}
	if s.lock != nil {
		errs = append(errs, advertised.Withdraw(s.dir))
		if s.socket != "" {
			errs = append(errs, os.RemoveAll(filepath.Dir(s.socket)))
		}
		if s.temporary {
			errs = append(errs, os.RemoveAll(s.dir))
		}
		errs = append(errs, s.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop servers: %w", err)
	}
	return nil
}
