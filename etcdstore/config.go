package etcdstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

const (
	defaultCluster = "taskledger"
	defaultShards  = 16
	maxShards      = 256 // every shard costs every node a watch and an idle owner loop
	maxNameBytes   = 64
	defaultQuota   = 2 << 30 // as etcd's own
)

// ErrNoCluster reports that there is no cluster of the name in this etcd.
var ErrNoCluster = errors.New("no such cluster")

// ErrOtherCluster reports that the cluster of the name has another id than was expected.
var ErrOtherCluster = errors.New("it is another cluster")

// ErrShards reports that the cluster was created with another number of shards than asked for.
var ErrShards = errors.New("the number of shards never changes")

// ErrAuthOff reports an etcd whose authentication is off.
var ErrAuthOff = errors.New("authentication of etcd is off")

// Config says which etcd, and which cluster in it.
type Config struct {
	// Cluster is the prefix of all keys: 1 to 64 of [a-z0-9-]. Default "taskledger".
	Cluster string
	// Shards is the number of shards of a cluster that Open creates: a power of two up to 256. 0 means 16 then, and
	// whatever the cluster has when it exists; any other value must be the cluster's, else Open wraps ErrShards.
	Shards int
	// Existing refuses to create the cluster: Open then wraps ErrNoCluster, or store.ErrUnavailable of one that has
	// lost its meta key. A program that only reads sets it.
	Existing bool
	// ID is the id that the cluster must have: with it Open creates no cluster, and wraps ErrOtherCluster if the
	// cluster has another id. Default: any.
	ID string
	// MayCreate is asked before the cluster is created, which an error prevents. Default: it may.
	MayCreate func(ctx context.Context) error
	// Endpoints are host:port or URLs of etcd members. https:// means TLS with the system's authorities; either all
	// of them are reached by TLS, or none. Or unix:PATH alone, the socket of a member on this machine: the path is
	// taken as it stands, nothing in it is escaped. Required without Dial and Client.
	Endpoints []string
	// Dial makes every connection, instead of Endpoints: to a member on this machine that may come back elsewhere. An
	// error is tried again.
	Dial func(ctx context.Context) (net.Conn, error)
	// DialName names the server that Dial reaches in errors. Default "the server of the dialer".
	DialName string
	// TLS secures the connections, and http:// is an error then, as is a socket or Dial. Default: as the endpoints
	// say.
	TLS *tls.Config
	// Authorities is asked before every handshake whom to believe, beside TLS. Default: whom TLS does.
	Authorities func() (*x509.CertPool, error)
	// Username and Password authenticate to etcd; one without the other is an error. The user must be permitted to
	// read and write the keys that start with Cluster and a slash, nothing else; only root can compact, so etcd
	// must do it by itself otherwise. Default none.
	Username, Password string
	// Authenticated refuses an etcd whose authentication is off: that takes any Username and lets everybody do
	// everything. Open then wraps ErrAuthOff. What is switched off later is not seen. Asking takes no right.
	Authenticated bool
	// Client is used instead of Endpoints, Dial, TLS, Username, Password and Authenticated. The caller closes it,
	// after the Store.
	Client *clientv3.Client
	// RequestTimeout bounds one request, after which it is sent again, to the next member. Default 2s, at least 100ms.
	RequestTimeout time.Duration
	// Quota bounds the size of etcd's file, in bytes, where the members report no quota: those before 3.6, and those
	// without one. Default 2 GiB, as etcd's own; a negative one is an error.
	Quota int64
	// Defragment defragments the one member of an etcd that runs in this process, and returns when it is done. It must
	// go over a connection, which the client of such an etcd does not have. Default: Store.Defragment is refused.
	Defragment func(ctx context.Context) error
	// Log receives what is worth an operator's attention. Default: slog.Default().
	Log *slog.Logger
}

// complete returns the configuration with defaults, or an error that names the field out of range.
func (c Config) complete() (Config, error) {
	if c.Cluster == "" {
		c.Cluster = defaultCluster
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 2 * time.Second
	}
	if c.Quota == 0 {
		c.Quota = defaultQuota
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	switch {
	case len(c.Cluster) > maxNameBytes || strings.Trim(c.Cluster, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return c, fmt.Errorf("cluster name %q: want 1 to %d of [a-z0-9-]", c.Cluster, maxNameBytes)
	case c.Shards != 0 && !validShards(c.Shards):
		return c, fmt.Errorf("%d shards: want a power of two from 1 to %d", c.Shards, maxShards)
	case c.RequestTimeout < 100*time.Millisecond:
		return c, fmt.Errorf("request time-out %s: want at least 100ms", c.RequestTimeout)
	case c.Quota < 0:
		return c, fmt.Errorf("etcd quota %d: want at least 0", c.Quota)
	case count(c.Client != nil, c.Dial != nil, len(c.Endpoints) > 0) != 1:
		return c, errors.New("etcd: want either endpoints, a dialer or a client")
	case c.Authorities != nil && c.TLS == nil:
		return c, errors.New("etcd: want TLS beside authorities")
	case c.Dial != nil && c.TLS != nil:
		return c, errors.New("etcd: want no TLS with a dialer")
	case (c.Username == "") != (c.Password == ""):
		return c, &store.InvalidError{Field: "etcd", Problem: "want user and password, or neither"}
	}
	return c, checkEndpoints(c.Endpoints, c.TLS != nil)
}

// checkEndpoints refuses what the client would take: it looks for TLS at the first endpoint alone, and would then send
// passwords in the clear. No error shows an endpoint that may hold a password.
func checkEndpoints(endpoints []string, withTLS bool) error {
	secure := 0
	for _, endpoint := range endpoints {
		scheme, _, found := strings.Cut(endpoint, "://")
		path, socket := socketPath(endpoint)
		switch {
		case socket && (path == "" || len(endpoints) > 1 || withTLS):
			return fmt.Errorf("endpoint %q: want the path of a socket, no other endpoint and no TLS beside it", endpoint)
		case socket:
		case strings.Contains(endpoint, "@"):
			return &store.InvalidError{Field: "etcd", Problem: "an endpoint holds a user: want Username and Password instead"}
		case withTLS && found && scheme == "http":
			return &store.InvalidError{Field: "endpoint " + endpoint, Problem: "want https:// with TLS"}
		case withTLS || scheme == "https":
			secure++
		}
	}
	if secure != 0 && secure != len(endpoints) {
		return fmt.Errorf("endpoints %s: want TLS at all or none", strings.Join(endpoints, ", "))
	}
	return nil
}

// socketPath returns the path that an endpoint of the form unix:PATH or unix://PATH holds.
func socketPath(endpoint string) (path string, socket bool) {
	if path, socket = strings.CutPrefix(endpoint, "unix://"); socket {
		return path, true
	}
	return strings.CutPrefix(endpoint, "unix:")
}

// count returns the number of arguments that are true.
func count(given ...bool) (n int) {
	for _, g := range given {
		if g {
			n++
		}
	}
	return n
}

func validShards(n int) bool { return n >= 1 && n <= maxShards && n&(n-1) == 0 }
