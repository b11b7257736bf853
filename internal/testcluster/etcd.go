// Package testcluster starts the servers that tests need, in this process and on loopback ports that the system picks.
package testcluster

import (
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

const startTimeout = timeout

// A member reserves two segments of its log, of 64 MB each by default, which tests hardly fill.
func init() { wal.SegmentSizeBytes = 8 << 20 }

// StartEtcd starts a one-member etcd that lives as long as the test, and returns the endpoint of its clients and a
// client that needs no connection.
func StartEtcd(t testing.TB) (endpoint string, client *clientv3.Client) {
	t.Helper()
	return startAlone(t, func(*embed.Config) {})
}

// StartSmallEtcd is StartEtcd with a quota, in bytes.
func StartSmallEtcd(t testing.TB, quota int64) (endpoint string, client *clientv3.Client) {
	t.Helper()
	return startAlone(t, func(cfg *embed.Config) { cfg.QuotaBackendBytes = quota })
}

func startAlone(t testing.TB, configure func(*embed.Config)) (endpoint string, client *clientv3.Client) {
	t.Helper()
	e := startEtcd(t, configure)
	client = v3client.New(e.Server)
	t.Cleanup(func() { client.Close() })
	return e.Clients[0].Addr().String(), client
}

// connected returns a client that reaches etcd over the network, as those of users do.
func connected(t testing.TB, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatalf("connect to etcd: %v", err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// startEtcd starts a member that lives as long as the test, and waits until it serves.
func startEtcd(t testing.TB, configure func(*embed.Config)) *embed.Etcd {
	t.Helper()
	cfg := etcdConfig(t.TempDir())
	configure(cfg)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatalf("start etcd: %v", err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		t.Fatalf("start etcd: %v", err)
	case <-time.After(startTimeout):
		t.Fatalf("etcd not ready after %s", startTimeout)
	}
	return e
}

// etcdConfig trades durability, which no test of one process can see, for speed.
func etcdConfig(dir string) *embed.Config {
	loopback := func() []url.URL { return []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}} }
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = loopback(), loopback()
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = loopback(), loopback()
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs = 10, 100 // milliseconds; it has nobody to hear from
	cfg.UnsafeNoFsync = true
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	return cfg
}
