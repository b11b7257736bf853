package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

const (
	// quotaBytes is the largest that etcd recommends; the engine's admission control acts well before.
	quotaBytes = 8 << 30
	// snapshotCount and catchUpEntries bound the raft entries that etcd keeps in memory for slow followers, of which a
	// single member has none: at the defaults 375 MB of journal take 452 MB of heap.
	snapshotCount  = 500
	catchUpEntries = 100
	// compactionRetention is the time for which etcd retains replaced values. compactionBatch bounds the values
	// that it scans in one of its transactions, for which commits wait: 10,000 hold them up for 200 ms in a large
	// store. Between two it rests for 10 ms.
	compactionRetention = 5 * time.Minute
	compactionBatch     = 300
	// watchProgress is the interval at which an idle watch learns the revision.
	watchProgress = 10 * time.Second
)

const loopback = "127.0.0.1"

// startEtcd returns when the member serves, on the socket and, unless it is 0, the port. Where it gives up it
// stores true in closing before it stops what runs.
func startEtcd(
	ctx context.Context, dir, socket string, port int, log *zap.Logger, closing *atomic.Bool, serves func(*grpc.Server),
) (*embed.Etcd, error) {
	cfg := etcdConfig(dir, socket, port, log)
	cfg.ServiceRegister = serves
	e, err := embedEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err = <-e.Err():
	case <-e.Server.StopNotify():
		err = errors.New("stopped while starting")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	closing.Store(true)
	e.Server.HardStop() // Close waits for ever for a server that does not become ready
	e.Close()
	return nil, err
}

// embedEtcd turns a panic, which is how etcd answers some damage to its data and a low limit of open files, into an
// error. What it had opened by then stays open.
func embedEtcd(cfg *embed.Config) (e *embed.Etcd, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("gave up: %v (where this names no other cause, its data may be damaged)", cause)
		}
	}()
	return embed.StartEtcd(cfg)
}

// etcdConfig describes a cluster of one. It has no listener for peers; the address advertised to them stands in the
// data for ever and is never dialled.
func etcdConfig(dir, socket string, port int, log *zap.Logger) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = "embedded"
	cfg.Dir = dir
	cfg.ListenPeerUrls = nil
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	if port != 0 {
		host := net.JoinHostPort(loopback, strconv.Itoa(port))
		cfg.ListenClientUrls = append(cfg.ListenClientUrls, url.URL{Scheme: "http", Host: host})
	}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	cfg.QuotaBackendBytes = quotaBytes
	cfg.SnapshotCount = snapshotCount
	cfg.SnapshotCatchUpEntries = catchUpEntries
	cfg.AutoCompactionMode = embed.CompactorModePeriodic
	cfg.AutoCompactionRetention = compactionRetention.String()
	cfg.CompactionBatchLimit = compactionBatch
	cfg.WatchProgressNotifyInterval = watchProgress
	// A web page must not reach the store through its reader's browser.
	cfg.EnableGRPCGateway = false
	cfg.HostWhitelist = map[string]struct{}{loopback: {}, "localhost": {}}
	cfg.CORS = map[string]struct{}{"http://" + loopback: {}}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return cfg
}
