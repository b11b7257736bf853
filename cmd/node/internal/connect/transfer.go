package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"taskledger/cluster"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/natsbus"
	"taskledger/store"
)

// Receiving is the place of a cluster that is copied into an etcd, and into the JetStream beside it.
type Receiving struct {
	*etcdstore.Receiver
	Archive store.Archive // nil without NATS
	nats    *cluster.Cluster
}

// Close ends the connections.
func (r *Receiving) Close() error {
	var err error
	if r.nats != nil {
		err = r.nats.Close()
	}
	return errors.Join(err, r.Receiver.Close())
}

// ReceiveAt looks at the place at the addresses into which a cluster is to be copied, and changes nothing there. of
// names what is copied for people. Of a, Shards, ID, Existing, New and Private do not count. The caller closes it.
func ReceiveAt(ctx context.Context, a Addresses, c store.Cluster, of string) (*Receiving, error) {
	etcdTLS, etcdCAs, err := a.EtcdTLS.config()
	if err != nil {
		return nil, fmt.Errorf("TLS of etcd: %w", err)
	}
	natsTLS, natsCAs, err := a.NATSTLS.config()
	if err != nil {
		return nil, fmt.Errorf("TLS of NATS: %w", err)
	}
	a.warnPlain(ctx)
	into, err := etcdstore.Receive(ctx, etcdstore.Config{
		Cluster:     a.Cluster,
		Endpoints:   a.Etcd,
		TLS:         etcdTLS,
		Authorities: etcdCAs,
		Username:    a.EtcdUser,
		Password:    a.EtcdPassword,
		Log:         a.Log,
	}, c, of)
	if err != nil {
		return nil, err
	}
	archive := a.Archive
	archive.Cluster = c.ID
	return receive(ctx, into, len(a.NATS) > 0, cluster.Config{
		Name:            a.Cluster,
		Key:             c.Key,
		Shards:          c.Shards,
		NATS:            a.NATS,
		NATSTLS:         natsTLS,
		NATSAuthorities: natsCAs,
		NATSUser:        a.NATSUser,
		NATSPassword:    a.NATSPassword,
		NATSCreds:       a.NATSCreds,
		NATSNKey:        a.NATSNKey,
		Archive:         archive,
		Log:             a.Log,
	})
}

// ReceiveOn is ReceiveAt on servers of this process.
func ReceiveOn(
	ctx context.Context, servers *embedded.Servers, name string, c store.Cluster, of string, log *slog.Logger,
) (*Receiving, error) {
	into, err := etcdstore.Receive(ctx, etcdstore.Config{
		Cluster: name,
		Client:  servers.EtcdClient(),
		Log:     log,
	}, c, of)
	if err != nil {
		return nil, err
	}
	return receive(ctx, into, true, onServers(servers, name, c, log))
}

// receive opens the archive beside an etcd.
func receive(ctx context.Context, into *etcdstore.Receiver, archives bool, at cluster.Config) (*Receiving, error) {
	r := &Receiving{Receiver: into}
	if !archives {
		return r, nil
	}
	nats, err := cluster.Open(ctx, at)
	if err != nil {
		return nil, errors.Join(err, into.Close())
	}
	r.nats, r.Archive = nats, nats.Archive
	if _, err := r.Archive.Head(ctx, 0); errors.Is(err, natsbus.ErrNoJetStream) {
		r.Archive = nil
	}
	return r, nil
}

// Sending is a cluster on servers of this process that is copied.
type Sending struct {
	Store   *etcdstore.Store
	Archive store.Archive
	nats    *cluster.Cluster
}

// SendOn opens the cluster of a name on servers of this process, which must be there. Nobody else is told of the
// servers. The caller closes it.
func SendOn(ctx context.Context, servers *embedded.Servers, a Addresses) (*Sending, error) {
	from, err := etcdstore.Open(ctx, etcdstore.Config{
		Cluster:  a.Cluster,
		ID:       a.ID,
		Existing: true,
		Client:   servers.EtcdClient(),
		Log:      a.Log,
	})
	if err != nil {
		return nil, err
	}
	nats, err := cluster.Open(ctx, onServers(servers, a.Cluster, from.Cluster(), a.Log))
	if err != nil {
		return nil, errors.Join(err, from.Close())
	}
	return &Sending{Store: from, Archive: nats.Archive, nats: nats}, nil
}

// Close ends the connections.
func (s *Sending) Close() error { return errors.Join(s.nats.Close(), s.Store.Close()) }

// AwaitEnded returns once no session of a node is left that was killed, or when ctx ends, with its cause. tell is
// called for the first one that is awaited.
func (s *Sending) AwaitEnded(ctx context.Context, tell func(node string)) error {
	told := false
	for now, err := range s.Store.WatchMembers(ctx) {
		if err != nil {
			continue // it goes on by itself
		}
		if len(now.Nodes) == 0 {
			return nil
		}
		for id, n := range now.Nodes {
			if !told {
				tell(cmp.Or(n.Name, id))
			}
			told = true
		}
	}
	return context.Cause(ctx)
}

// onServers says how to reach the NATS on servers of this process.
func onServers(servers *embedded.Servers, name string, c store.Cluster, log *slog.Logger) cluster.Config {
	archive := embedded.ArchiveConfig()
	archive.Cluster = c.ID
	return cluster.Config{
		Name:     name,
		Key:      c.Key,
		Shards:   c.Shards,
		NATS:     []string{servers.NATSURL()},
		NATSNKey: servers.NATSNKey(),
		Archive:  archive,
		Log:      log,
	}
}
