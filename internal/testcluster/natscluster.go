package testcluster

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startWithin bounds how long each server of a cluster may take to accept connections.
const startWithin = 10 * time.Second

// NATSCluster is three servers with JetStream that find each other, each on a loopback port of its own.
type NATSCluster struct {
	URLs    []string
	servers []*server.Server
}

// StartNATSCluster runs the servers until the test ends.
func StartNATSCluster(t testing.TB) *NATSCluster {
	t.Helper()
	c := &NATSCluster{}
	nowhere := &url.URL{Scheme: "nats", Host: "127.0.0.1:1"} // JetStream wants to know of three servers from the start
	routes := []*url.URL{nowhere, nowhere}
	for i := range 3 {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
			JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT}, Routes: routes,
		})
		if err != nil {
			t.Fatalf("make NATS server %d: %v", i, err)
		}
		s.Start()
		t.Cleanup(func() { stopServer(s) })
		if !s.ReadyForConnections(startWithin) {
			t.Fatalf("NATS server %d not ready after %s", i, startWithin)
		}
		routes = append([]*url.URL{{Scheme: "nats", Host: s.ClusterAddr().String()}}, routes[:1]...)
		c.URLs, c.servers = append(c.URLs, s.ClientURL()), append(c.servers, s)
	}
	return c
}

// Stop stops the server of that name, for good.
func (c *NATSCluster) Stop(name string) {
	for _, s := range c.servers {
		if s.Name() == name {
			stopServer(s)
		}
	}
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}
