// Package connect reaches a cluster as the flags say: on servers of this process, on those that a directory advertises,
// or at addresses.
package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"taskledger/api/remote"
	"taskledger/cluster"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/internal/advertised"
	"taskledger/natsbus"
	"taskledger/store"
)

// Link is an open cluster and where it is.
type Link struct {
	*cluster.Cluster          // nil where API is not
	Etcd             []string // where other processes reach it
	NATS             []string // the same, without user, password or token
	// API asks a node whose store no other process can open; nil = the store is open.
	API *remote.Client
}

// Close closes what the link has opened.
func (l *Link) Close() error {
	if l.API != nil {
		l.API.Close()
		return nil
	}
	return l.Cluster.Close()
}

// AwaitEven returns when every shard has a live owner and none of the nodes, whose number is given, has more than its
// share, or when ctx ends, with its cause.
func (l *Link) AwaitEven(ctx context.Context, nodes int) error {
	shards := l.Store.Cluster().Shards
	share := (shards + nodes - 1) / nodes
	for now, err := range l.Store.WatchMembers(ctx) {
		if err != nil {
			continue // it goes on by itself
		}
		even, owned := len(now.Owners) == shards, map[string]int{}
		for _, o := range now.Owners {
			owned[o.Node]++
			_, alive := now.Nodes[o.Node]
			even = even && alive && owned[o.Node] <= share
		}
		if even {
			return nil
		}
	}
	return context.Cause(ctx)
}

// On links to servers of this process. shards counts only when it creates the named cluster ("" = "taskledger"); 0 =
// 16.
func On(ctx context.Context, servers *embedded.Servers, name string, shards int, log *slog.Logger) (*Link, error) {
	open, err := servers.Connect(ctx, name, shards, log)
	if err != nil {
		return nil, err
	}
	link := &Link{Cluster: open, Etcd: []string{servers.EtcdEndpoint()}, NATS: Bare([]string{servers.NATSURL()})}
	if tcp := servers.EtcdURL(); tcp != "" {
		link.Etcd = append(link.Etcd, tcp)
	}
	return link, nil
}

// In links to a cluster on the servers of the node that runs on dir. Of a, Cluster, Shards, ID, Existing, New, Private
// and Log count. It wraps cluster.ErrNoNode when no node runs there.
func In(ctx context.Context, dir string, a Addresses) (*Link, error) {
	open, err := cluster.Open(ctx, cluster.Config{Name: a.Cluster, Shards: a.Shards, Existing: a.Existing, ID: a.ID, New: a.New, Dir: dir, Private: a.Private, Log: a.Log})
	if err != nil {
		return nil, absent(noNode(err, dir), dir)
	}
	link := &Link{Cluster: open}
	if at, err := advertised.Read(dir); err == nil { // else it has just stopped
		link.Etcd, link.NATS = at.Etcd, Bare([]string{at.NATS})
	}
	return link, nil
}

// noNode says of a node that serves none of the cluster that no node runs there.
func noNode(err error, where string) error {
	if errors.Is(err, etcdstore.ErrNoCluster) {
		return fmt.Errorf("%w at %s: %w", cluster.ErrNoNode, where, err)
	}
	return err
}

// Addresses say where servers are and who asks.
type Addresses struct {
	Cluster string   // prefix of keys and subjects; default "taskledger"
	Shards  int      // of a cluster that is created; 0 = 16
	Etcd    []string // required
	NATS    []string // none: hand-over and futures go by way of etcd

	EtcdTLS, NATSTLS       TLS
	EtcdUser, EtcdPassword string
	NATSUser, NATSPassword string // besides what the URLs hold
	NATSCreds              string // path of a credentials file
	NATSNKey               string // path of a file that holds the seed of an nkey
	Archive                natsbus.ArchiveConfig
	ID                     string // of the cluster, where it is known
	Existing               bool   // refuse to create the cluster
	New                    bool   // create it also beside the archive of another one
	Private                bool   // refuse an etcd that others can write, with connection.ErrNotPrivate
	Log                    *slog.Logger
}

// At links to the servers at the addresses. It wraps store.ErrUnavailable when etcd cannot be reached, and
// etcdstore.ErrDenied when it refuses the user. Connections without TLS to other machines are logged as warnings. NATS
// is connected, and its refusals logged, while the link is used.
func At(ctx context.Context, a Addresses) (*Link, error) {
	etcdTLS, etcdCAs, err := a.EtcdTLS.config()
	if err != nil {
		return nil, fmt.Errorf("TLS of etcd: %w", err)
	}
	natsTLS, natsCAs, err := a.NATSTLS.config()
	if err != nil {
		return nil, fmt.Errorf("TLS of NATS: %w", err)
	}
	a.warnPlain(ctx)
	open, err := cluster.Open(ctx, cluster.Config{Name: a.Cluster, Shards: a.Shards, Existing: a.Existing, ID: a.ID, New: a.New,
		Etcd: a.Etcd, EtcdTLS: etcdTLS, EtcdAuthorities: etcdCAs, EtcdUser: a.EtcdUser, EtcdPassword: a.EtcdPassword,
		NATS: a.NATS, NATSTLS: natsTLS, NATSAuthorities: natsCAs, NATSUser: a.NATSUser, NATSPassword: a.NATSPassword, NATSCreds: a.NATSCreds, NATSNKey: a.NATSNKey,
		Private: a.Private, Archive: a.Archive, Log: a.Log})
	where := strings.Join(a.Etcd, ", ")
	switch {
	case errors.Is(err, etcdstore.ErrNoCluster):
		return nil, noNode(err, where)
	case errors.Is(err, store.ErrUnavailable) || errors.Is(err, etcdstore.ErrDenied):
		return nil, fmt.Errorf("etcd at %s: %w", where, err)
	case err != nil:
		return nil, err // of a: endpoints in it may hold a password
	}
	return &Link{Cluster: open, Etcd: a.Etcd, NATS: Bare(a.NATS)}, nil
}

// Bare returns the URLs without what only members may see.
func Bare(raw []string) (urls []string) {
	for _, text := range raw {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			u.User = nil
			urls = append(urls, u.String())
		}
	}
	return urls
}
