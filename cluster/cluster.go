// Package cluster connects a process to a cluster: store, bus, archive and logs from one configuration, under one name.
// It links no server.
//
// # Which servers
//
// Config names them in one of three ways. With Etcd, and mostly NATS, they are servers of your own. Dir names the data
// directory of a node that runs on this machine with the servers inside. Key, with NATS and Shards, is for a client
// that does without etcd.
//
// # When a cluster is created
//
// Servers can hold several clusters, each under a name of its own. Open with Etcd or Dir creates the cluster of
// Config.Name where there is none, so a typing error in the name leads to a second, empty one. Config.Existing makes
// Open return etcdstore.ErrNoCluster instead: set it wherever the cluster has to be there.
//
// # Closing
//
// End the context of each Run, wait until every Run has returned, then Close the Cluster, and last of all servers in
// this process.
package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/url"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/internal/connection"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/tasklog"
)

// Config says which cluster, on which servers, and who asks. One of Etcd, Dir and Key is required.
type Config struct {
	// Name is the prefix of all keys and subjects: 1 to 64 of [a-z0-9-]. Default "taskledger". Another name is another
	// cluster, which Open creates unless Existing is set.
	Name string
	// Shards is the number of shards of a cluster that Open creates: a power of two up to 256. 0 means 16 then, and
	// whatever the cluster has when it exists; any other value must be the cluster's.
	Shards int
	// Existing refuses to create the cluster: Open then returns etcdstore.ErrNoCluster. A program that only reads
	// sets it.
	Existing bool
	// ID is the cluster's, where it is known: Open then creates none, and wraps etcdstore.ErrOtherCluster if the
	// cluster has another.
	ID string
	// New creates the cluster also where NATS holds the archive of another one of this name, which Open refuses with
	// ErrArchived otherwise.
	New bool

	// Etcd are endpoints as etcdstore.Config has them: host:port, URLs, or one unix:PATH.
	Etcd    []string
	EtcdTLS *tls.Config // default: as the endpoints say
	// EtcdAuthorities and NATSAuthorities return the certificate authorities to trust, and are called before every
	// handshake. Default: those of EtcdTLS and NATSTLS.
	EtcdAuthorities, NATSAuthorities func() (*x509.CertPool, error)
	EtcdUser, EtcdPassword           string // default: none

	// NATS are URLs. Without any, hand-over and futures go by way of etcd, nothing is archived, and no logs
	// of tasks are kept.
	NATS                   []string
	NATSTLS                *tls.Config // default: as the URLs and the servers say
	NATSUser, NATSPassword string      // of the URLs that hold none; default: none
	NATSCreds              string      // path of a credentials file; default: none
	NATSNKey               string      // path of a file that holds the seed of an nkey; default: none

	// Dir is the data directory of a node of this user that runs on this machine with the servers inside. It takes the
	// place of everything above between Existing and here, which is an error beside it; where the servers are is read
	// again whenever they do not answer, so that they may come back elsewhere.
	Dir string

	// Private refuses an etcd that others can write: it is for nodes that run what others must not start. With Etcd,
	// set one of three. EtcdTLS must hold a client certificate; Open cannot check that etcd asks for it. EtcdUser is
	// enough where Open finds that authentication is on. A socket, unix:PATH, must lie in a directory of this user
	// that is closed to others. The servers of Dir must be of the user of this process, and open no port of etcd. Open
	// fails otherwise. An open cluster does without etcd while others may enter the directory of its socket, and
	// without etcd and NATS of a Dir while these servers open the port or are of another user.
	Private bool

	// Key is the cluster's, 32 bytes, for a client that does without etcd: with NATS, and with Shards, which must be the
	// cluster's: engine.Client.Run checks it once a node answers. Both come from a member (Store.Cluster). Whoever holds
	// the key can submit and forge messages.
	Key []byte

	Archive natsbus.ArchiveConfig // the servers of Dir sync always: there it does not count
	Logs    natsbus.LogsConfig    // of tasks; its Cluster does not count
	Log     *slog.Logger          // default: slog.Default()
}

// Cluster is one open cluster. Its fields may be used concurrently until Close. A program that has opened a store and a
// bus of the same name itself may fill them in. Its archive is then of a natsbus.ArchiveConfig that has the id of the
// store's cluster: without that an archive of another cluster is taken for this one's.
type Cluster struct {
	Store   store.Store   // nil without etcd
	Bus     store.Bus     // nil without NATS
	Archive store.Archive // nil without NATS; whether NATS has JetStream shows when the archive is used
	Logs    tasklog.Store // the logs of tasks; nil without NATS

	shards int // counts without Store
}

// ErrArchived reports that a cluster was not created because NATS holds the archive of another cluster of its name:
// see Config.New.
var ErrArchived = connection.ErrArchived

// Open connects to etcd, creates or reads the cluster there, and goes on connecting to NATS in the background, for
// ever. ctx bounds the opening only. It wraps ErrNoNode when nothing runs on Dir, store.ErrUnavailable when etcd
// cannot be reached, etcdstore.ErrDenied when etcd refuses the user, etcdstore.ErrNoCluster, ErrOtherCluster and
// ErrShards when the cluster is not as Config says, and ErrArchived. The caller must close the cluster, after the
// nodes and clients on it have ended.
func Open(ctx context.Context, cfg Config) (*Cluster, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	to := connection.Config{
		Etcd: etcdstore.Config{
			Cluster:     cfg.Name,
			Shards:      cfg.Shards,
			Existing:    cfg.Existing,
			ID:          cfg.ID,
			Endpoints:   cfg.Etcd,
			TLS:         cfg.EtcdTLS,
			Authorities: cfg.EtcdAuthorities,
			Username:    cfg.EtcdUser,
			Password:    cfg.EtcdPassword,
			Log:         cfg.Log,
		},
		NATS: natsbus.Config{
			Cluster:     cfg.Name,
			Key:         cfg.Key,
			TLS:         cfg.NATSTLS,
			Authorities: cfg.NATSAuthorities,
			Creds:       cfg.NATSCreds,
			NKey:        cfg.NATSNKey,
			Log:         cfg.Log,
		},
		Archive: cfg.Archive,
		Logs:    cfg.Logs,
		New:     cfg.New,
	}
	var err error
	if to.NATS.URLs, err = withUser(cfg.NATS, cfg.NATSUser, cfg.NATSPassword); err != nil {
		return nil, err
	}
	if cfg.Private && len(cfg.Etcd) > 0 {
		if err := cfg.keepPrivate(&to.Etcd); err != nil {
			return nil, err
		}
	}
	if cfg.Dir != "" {
		if err := inDir(ctx, cfg.Dir, cfg.Private, &to.Etcd, &to.NATS); err != nil {
			return nil, err
		}
		to.Archive = natsbus.ArchiveConfig{DurableAfter: -1}
	}
	is, err := connection.Open(ctx, to)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		Store:   is.Store,
		Bus:     is.Bus,
		Archive: is.Archive,
		Logs:    is.Logs,
		shards:  cfg.Shards,
	}, nil
}

// check names what is missing or given twice; the rest is checked where it is used.
func (c Config) check() error {
	given := 0
	for _, is := range []bool{len(c.Etcd) > 0, c.Dir != "", c.Key != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return &store.InvalidError{Field: "config", Problem: "want one of Etcd, Dir and Key"}
	case c.Dir != "" && len(c.NATS) > 0:
		return &store.InvalidError{Field: "nats", Problem: "want none beside Dir, which tells where NATS is"}
	case c.Dir != "" && (c.EtcdTLS != nil || c.EtcdUser != "" || c.EtcdPassword != ""):
		return &store.InvalidError{
			Field:   "etcd",
			Problem: "want no EtcdTLS, EtcdUser and EtcdPassword beside Dir: its etcd asks for none",
		}
	case c.Dir != "" && (c.NATSTLS != nil || c.NATSUser != "" || c.NATSPassword != "" || c.NATSCreds != "" || c.NATSNKey != ""):
		return &store.InvalidError{Field: "nats", Problem: "want no NATSTLS, NATSUser, NATSPassword, NATSCreds and NATSNKey beside Dir, which tells how to get in"}
	case c.Key != nil && (len(c.NATS) == 0 || c.Shards == 0):
		return &store.InvalidError{Field: "key", Problem: "want NATS and the cluster's Shards beside it"}
	case c.NATSUser != "" && c.NATSPassword == "":
		return &store.InvalidError{Field: "nats-user", Problem: "want a password, too"}
	}
	return nil
}

// NewNode makes a node of the cluster: Store and Bus are set, Archive unless it is given or Trimming is TrimAll, and
// Logs unless they are given. Set Logs of the cluster to nil for a node that keeps none.
func (c *Cluster) NewNode(cfg engine.NodeConfig) (*engine.Node, error) {
	cfg.Store, cfg.Bus = c.Store, c.Bus
	if cfg.Archive == nil && cfg.Trimming != engine.TrimAll {
		cfg.Archive = c.Archive
	}
	if cfg.Logs == nil {
		cfg.Logs = c.Logs
	}
	return engine.NewNode(cfg)
}

// NewClient makes a client of the cluster: Store, Bus, Shards, and Archive and Logs unless they are given, are set.
func (c *Cluster) NewClient(cfg engine.ClientConfig) (*engine.Client, error) {
	cfg.Store, cfg.Bus, cfg.Shards = c.Store, c.Bus, c.shards
	if cfg.Archive == nil && c.Archive != nil {
		cfg.Archive = c.Archive
	}
	if cfg.Logs == nil {
		cfg.Logs = c.Logs
	}
	return engine.NewClient(cfg)
}

// Close closes Store and Bus; Archive and Logs need no closing. It is called once, after the nodes and clients of the
// cluster have ended.
func (c *Cluster) Close() error { return connection.Close(c.Store, c.Bus) }

// withUser puts user and password into every URL that has none.
func withUser(raw []string, user, password string) (urls []string, err error) {
	for _, text := range raw {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" { // the text may hold a password
			return nil, &store.InvalidError{Field: "nats", Problem: "want a URL such as nats://host:4222"}
		}
		if u.User == nil && user != "" {
			u.User = url.UserPassword(user, password)
		}
		urls = append(urls, u.String())
	}
	return urls, nil
}
