//go:build !unix

package testcluster

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// reservePort lets the server pick a port, which another program may take while the server is stopped.
func reservePort(testing.TB) int { return server.RANDOM_PORT }
