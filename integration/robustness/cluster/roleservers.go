package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	release "taskledger/internal/version"
	"taskledger/natsbus"
)

// startWithin bounds how long a server takes to be ready: a member of etcd waits for a majority.
const startWithin = 60 * time.Second

const loopback = "127.0.0.1"

// Versions names what runs in the roles.
func Versions() []string {
	return []string{"taskledger " + release.Version, "etcd " + version.Version, "nats-server " + server.VERSION, runtime.Version()}
}

// etcd is a member that listens on ports that the system picks, and tells others the addresses of the links to it.
func (p *inRole) etcd() error {
	member, err := embed.StartEtcd(p.etcdConfig())
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	defer member.Close()
	// Before it is ready: it cannot be before the others have found it.
	p.say(Word{Peers: member.Peers[0].Addr().String(), Clients: member.Clients[0].Addr().String(), ID: member.Server.MemberID().String()})
	select {
	case <-member.Server.ReadyNotify():
	case err := <-member.Err():
		return fmt.Errorf("start etcd: %w", err)
	case <-time.After(startWithin):
		return errors.New("etcd is not ready in time")
	}
	p.say(Word{Ready: true})
	return idle()
}

func (p *inRole) etcdConfig() *embed.Config {
	anyPort := []url.URL{{Scheme: "http", Host: loopback + ":0"}}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = p.Name, p.Dir
	cfg.ListenPeerUrls, cfg.ListenClientUrls = anyPort, anyPort
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: p.Peers}}
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: p.Clients}}
	var all []string
	for name, address := range p.Members {
		all = append(all, name+"=http://"+address)
	}
	cfg.InitialCluster = strings.Join(all, ",")
	cfg.QuotaBackendBytes = p.Quota
	cfg.UnsafeNoFsync = true // what a process has written survives its death, and the machine does not die
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(p.zap())
	return cfg
}

// zap logs warnings to standard error, which the driver keeps.
func (p *inRole) zap() *zap.Logger {
	cfg := zap.NewProductionConfig()
	cfg.Level = zap.NewAtomicLevelAt(zap.WarnLevel)
	log, err := cfg.Build()
	if err != nil {
		return zap.NewNop()
	}
	return log
}

// archiveOf returns the archive that NATS in its role keeps, over the connection of a bus. What it acknowledges is
// durable.
func archiveOf(bus *natsbus.Bus) (*natsbus.Archive, error) {
	return bus.Archive(natsbus.ArchiveConfig{DurableAfter: -1})
}

// nats is a server with JetStream, which keeps in Dir what it has acknowledged; without a Dir it keeps nothing.
func (p *inRole) nats() error {
	s, err := server.NewServer(&server.Options{ServerName: p.Name, Host: loopback, Port: server.RANDOM_PORT, NoSigs: true, NoSystemAccount: true,
		MaxPending: p.MaxPending, WriteDeadline: time.Second, JetStream: p.Dir != "", StoreDir: p.Dir, SyncAlways: true})
	if err != nil {
		return fmt.Errorf("make NATS: %w", err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(startWithin) {
		return errors.New("NATS is not ready in time")
	}
	p.say(Word{Ready: true, Clients: s.Addr().(*net.TCPAddr).String()})
	// Count counts the clients that were dropped because they were too slow.
	return p.obey(func(Order) (int64, error) { return s.NumSlowConsumers(), nil })
}
