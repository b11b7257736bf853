package natsbus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/nats-io/nats.go"
)

// KeyBytes is the length of a cluster key.
const KeyBytes = 32

// defaultCluster is the prefix of a cluster without a name of its own.
const defaultCluster = "taskledger"

// Config says which NATS to use and how. One of URLs, InProcess and Conn is required.
type Config struct {
	// Key authenticates the messages between members: 32 bytes, required, the same for all members of the cluster.
	Key []byte
	// Cluster is the prefix of every subject, 1 to 64 of [a-z0-9-]; the same as the store's. Default "taskledger".
	Cluster string

	// URLs of the servers, tried in random order, again and again; they may hold a user and password or a token.
	URLs []string
	// InProcess is an embedded server, reached without a socket. URLs then only tell user and password or token, and
	// Dial is not used.
	InProcess nats.InProcessConnProvider
	// Conn is used instead of a connection of the bus's own; Dial, TLS, Creds, NKey and Name are then ignored. It
	// must have been connected once. Its handlers are called after the bus's own and must not be changed while the
	// bus is open. The caller closes it, after the bus. Its options should be reconnect for ever, and no reconnect
	// buffer.
	Conn *nats.Conn

	// Dial makes every connection, whatever the URLs say: to a server that may come back elsewhere. An attempt ends
	// with ctx. Default: the URLs are dialled.
	Dial func(ctx context.Context) (net.Conn, error)

	TLS *tls.Config // default: as the URLs and the servers say
	// Authorities returns the certificate authorities to trust, and is called before every handshake. Default:
	// those of TLS.
	Authorities func() (*x509.CertPool, error)
	Creds       string // path of a NATS credentials file; default: none
	NKey        string // path of a file with the seed of an nkey, which signs the server's challenge; default: none
	Name        string // shown by the server's monitoring; default "taskledger"

	Log *slog.Logger // default: slog.Default()
}

// complete returns c with its defaults, or says what is wrong with it.
func (c Config) complete() (Config, error) {
	if c.Cluster == "" {
		c.Cluster = defaultCluster
	}
	if c.Name == "" {
		c.Name = defaultCluster
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if len(c.Key) != KeyBytes {
		return c, fmt.Errorf("cluster key: %d bytes, want %d", len(c.Key), KeyBytes)
	}
	if c.Conn == nil && c.InProcess == nil && len(c.URLs) == 0 {
		return c, errors.New("no NATS given: set URLs, InProcess or Conn")
	}
	if c.Conn != nil && (c.InProcess != nil || len(c.URLs) > 0) {
		return c, errors.New("both Conn and URLs or InProcess given: set one")
	}
	if c.Conn != nil && c.Conn.MaxPayload() == 0 { // the server's greeting tells it
		return c, errors.New("the given Conn has never been connected")
	}
	return c, checkCluster(c.Cluster)
}
