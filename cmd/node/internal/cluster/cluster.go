// Package cluster reaches a cluster: on servers of this process, on those that a directory advertises, or at addresses.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/natsbus"
)

// ErrNoNode reports that no node runs on a directory, or no longer.
var ErrNoNode = fmt.Errorf("%w: no node runs", engine.ErrUnavailable)

// Link is a store, a bus and an archive of one cluster.
type Link struct {
	Store   *etcdstore.Store
	Bus     *natsbus.Bus     // nil without NATS
	Archive *natsbus.Archive // nil without NATS; whether that has JetStream shows when it is used
	Etcd    []string         // where other processes reach it
	NATS    []string         // the same, without user, password or token
}

// EngineBus is the bus as the engine takes it: nil when there is none.
func (l *Link) EngineBus() engine.Bus {
	if l.Bus == nil {
		return nil
	}
	return l.Bus
}

// EngineArchive is the archive as the engine takes it: nil when there is none.
func (l *Link) EngineArchive() engine.Archive {
	if l.Archive == nil {
		return nil
	}
	return l.Archive
}

// Close gives up both connections.
func (l *Link) Close() error {
	var errs []error
	if l.Bus != nil {
		errs = append(errs, l.Bus.Close())
	}
	return errors.Join(append(errs, l.Store.Close())...)
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

// On links to servers of this process. shards counts only when it creates the named cluster ("" = "taskledger"); 0 = 16.
func On(ctx context.Context, servers *embedded.Servers, name string, shards int, log *slog.Logger) (*Link, error) {
	store, bus, err := servers.Connect(ctx, name, shards, log)
	if err != nil {
		return nil, err
	}
	link := &Link{Store: store, Bus: bus, Etcd: []string{servers.EtcdEndpoint()}, NATS: Bare([]string{servers.NATSURL()})}
	if open := servers.EtcdURL(); open != "" {
		link.Etcd = append(link.Etcd, open)
	}
	if bus == nil {
		return link, nil
	}
	if link.Archive, err = bus.Archive(embedded.ArchiveConfig()); err != nil {
		return nil, errors.Join(err, link.Close())
	}
	return link, nil
}

// probeWithin bounds the look whether anybody listens where a directory says.
const probeWithin = time.Second

// In links to a cluster on the servers of the node that runs on dir. Of a, Cluster, Shards, Existing and Log count. It
// wraps ErrNoNode when no node runs there.
func In(ctx context.Context, dir string, a Addresses) (*Link, error) {
	found, err := embedded.ReadAdvertised(dir)
	if err != nil {
		return nil, fmt.Errorf("%w on %s", ErrNoNode, dir)
	}
	for _, endpoint := range found.Etcd {
		if err := probe(ctx, endpoint); err != nil { // a killed node leaves its addresses behind
			return nil, fmt.Errorf("%w on %s any more: %w", ErrNoNode, dir, err)
		}
	}
	a = Addresses{Cluster: a.Cluster, Shards: a.Shards, Existing: a.Existing, Log: a.Log, Etcd: found.Etcd,
		Archive: embedded.ArchiveConfig()}
	if found.NATS != "" {
		a.NATS = []string{found.NATS}
	}
	return At(ctx, a)
}

func probe(ctx context.Context, endpoint string) error {
	conn, err := (&net.Dialer{Timeout: probeWithin}).DialContext(ctx, "unix", strings.TrimPrefix(endpoint, "unix:"))
	if err != nil {
		return err
	}
	return conn.Close()
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
	Archive                natsbus.ArchiveConfig
	Existing               bool // refuse to create the cluster
	Log                    *slog.Logger
}

// At links to the servers at the addresses. It wraps engine.ErrUnavailable when etcd cannot be reached, and
// etcdstore.ErrDenied when it refuses the user. Connections without TLS to other machines are logged as warnings. NATS is
// connected, and its refusals logged, while the link is used.
func At(ctx context.Context, a Addresses) (*Link, error) {
	etcdTLS, err := a.EtcdTLS.config()
	if err != nil {
		return nil, fmt.Errorf("TLS of etcd: %w", err)
	}
	natsTLS, err := a.NATSTLS.config()
	if err != nil {
		return nil, fmt.Errorf("TLS of NATS: %w", err)
	}
	urls, err := withUser(a.NATS, a.NATSUser, a.NATSPassword)
	if err != nil {
		return nil, err
	}
	a.warnPlain(ctx)
	store, err := etcdstore.Open(ctx, etcdstore.Config{Cluster: a.Cluster, Shards: a.Shards, Endpoints: a.Etcd, TLS: etcdTLS,
		Username: a.EtcdUser, Password: a.EtcdPassword, Existing: a.Existing, Log: a.Log})
	switch {
	case errors.Is(err, etcdstore.ErrNoCluster):
		return nil, fmt.Errorf("%w at %s: %w", ErrNoNode, strings.Join(a.Etcd, ", "), err)
	case errors.Is(err, engine.ErrUnavailable) || errors.Is(err, etcdstore.ErrDenied):
		return nil, fmt.Errorf("etcd at %s: %w", strings.Join(a.Etcd, ", "), err)
	case err != nil:
		return nil, err // of a: endpoints in it may hold a password
	}
	link := &Link{Store: store, Etcd: a.Etcd, NATS: Bare(urls)}
	if len(urls) == 0 {
		return link, nil
	}
	link.Bus, err = natsbus.Open(natsbus.Config{Key: store.Cluster().Key, Cluster: a.Cluster, URLs: urls, TLS: natsTLS,
		Creds: a.NATSCreds, Log: a.Log})
	if err == nil {
		link.Archive, err = link.Bus.Archive(a.Archive)
	}
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	return link, nil
}

// withUser puts user and password into every URL that has none.
func withUser(raw []string, user, password string) (urls []string, err error) {
	if user != "" && password == "" {
		return nil, &engine.InvalidError{Field: "nats-user", Problem: "want a password, too"}
	}
	for _, text := range raw {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return nil, &engine.InvalidError{Field: "nats", Problem: "want a URL such as nats://host:4222"}
		}
		if u.User == nil && user != "" {
			u.User = url.UserPassword(user, password)
		}
		urls = append(urls, u.String())
	}
	return urls, nil
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
