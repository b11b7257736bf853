package embedded

import (
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

// JetStreamConfig returns the configuration with which the NATS inside stores streams.
func (s *Servers) JetStreamConfig() *server.JetStreamConfig { return s.nats.JetStreamConfig() }

// EtcdLog returns where the etcd inside says what it thinks.
func (s *Servers) EtcdLog() *zap.Logger { return s.etcd.GetLogger() }

// EtcdWaitsForWatchers returns how long the etcd inside waits, when it is closed, for watchers outside to leave.
func (s *Servers) EtcdWaitsForWatchers() time.Duration { return s.etcd.Server.Cfg.ReqTimeout() }

// EtcdListeners are the addresses where the etcd inside accepts connections, those of peers included.
func (s *Servers) EtcdListeners() (all []net.Addr) {
	for _, l := range s.etcd.Clients {
		all = append(all, l.Addr())
	}
	for _, p := range s.etcd.Peers {
		all = append(all, p.Addr())
	}
	return all
}
