package embedded

import "github.com/nats-io/nats-server/v2/server"

// JetStreamConfig is how the NATS inside keeps streams.
func (s *Servers) JetStreamConfig() *server.JetStreamConfig { return s.nats.JetStreamConfig() }
