package testcluster

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/etcdstore"
	"taskledger/natsbus"
	"taskledger/store"
)

const (
	// prefix begins the keys of a cluster without a name of its own.
	prefix = "taskledger/"
	// timeout bounds what must come true sooner or later, on a slow and busy machine.
	timeout = 5 * time.Minute
	// defaultTTL lasts: no machine is so busy that a node cannot renew its session in it.
	defaultTTL = 60 * time.Second
	// defaultShards is enough for several nodes to share, and few enough to verify quickly.
	defaultShards = 8
	// pipeShards bounds the shards of a cluster that reaches etcd without a connection. Such a client and its server
	// wait for each other for ever when many watches begin or end at once: both have something to send, and neither
	// reads before the other does.
	pipeShards = 32
)

// Options say what a cluster of a test consists of. The zero value has etcd and NATS.
type Options struct {
	NoNATS    bool          // no member ever has a bus
	JetStream bool          // NATS keeps streams, and syncs every message
	Shards    int           // default 8
	TTL       time.Duration // of sessions; default 60s
	Quota     int64         // of the etcd in this process, in bytes; 0 = etcd's default
	Etcd      *EtcdMembers  // reached over the network, by every member with a client of its own; default: one in this process
}

// Cluster is etcd, NATS, and the nodes and clients that a test starts on them, all in this process. When the test ends,
// it verifies every journal, stops everybody and checks that nobody left a key behind. Its methods must be called from
// the test's goroutine, unless they say otherwise.
type Cluster struct {
	NATS *NATS            // nil without
	Etcd *clientv3.Client // needs no connection unless Options name an etcd, or many shards
	// Endpoint is the address of the etcd in this process for clients over the network.
	Endpoint string

	t       testing.TB
	options Options
	files   *files // nil: the store is in etcd
	log     *slog.Logger
	swept   swept

	mu      sync.Mutex
	nodes   []*Node
	clients []*Client
	killed  bool // a node was, and could not clean up
}

// New starts the servers of a cluster.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	if o.Shards == 0 {
		o.Shards = defaultShards
	}
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}
	c := &Cluster{t: t, options: o}
	c.log = slog.New(handler{slog.NewTextHandler(t.Output(), nil), &c.swept})
	if isOnFiles(t) {
		if o.Etcd != nil || o.JetStream || o.Quota != 0 {
			t.Fatal("the options of the cluster are of etcd and NATS, and its store is in files")
		}
		c.files = newFiles(t, o.Shards)
		t.Cleanup(c.finish)
		return c
	}
	if o.Etcd == nil && !o.JetStream && o.Quota == 0 {
		noteServers(t)
	}
	if o.Etcd != nil {
		c.Etcd = o.Etcd.client()
	} else {
		c.Endpoint, c.Etcd = StartSmallEtcd(t, o.Quota)
		if o.Shards > pipeShards {
			c.Etcd = connected(t, c.Endpoint)
		}
	}
	switch {
	case o.JetStream:
		c.NATS = StartJetStream(t)
	case !o.NoNATS:
		c.NATS = StartNATS(t)
	}
	t.Cleanup(c.finish)
	return c
}

// Shards is the number of shards.
func (c *Cluster) Shards() int { return c.options.Shards }

// connect opens the store and the bus of one more member; the bus is nil without NATS.
func (c *Cluster) connect(name string) (to store.Store, bus store.Bus, disconnect func(), log *slog.Logger) {
	c.t.Helper()
	log = c.log.With("member", name)
	if c.files != nil {
		if !c.options.NoNATS {
			bus = c.files.bus
		}
		return fileMember{c.files.store, c.files}, bus, func() {}, log
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cfg := etcdstore.Config{Client: c.Etcd, Shards: c.options.Shards, Log: log}
	if c.options.Etcd != nil {
		cfg.Client, cfg.Endpoints = nil, c.options.Etcd.Endpoints
	}
	opened, err := etcdstore.Open(ctx, cfg)
	if err != nil {
		c.t.Fatalf("open the store of %s: %v", name, err)
	}
	if c.NATS == nil {
		return opened, nil, func() { _ = opened.Close() }, log
	}
	nats, err := natsbus.Open(natsbus.Config{URLs: []string{c.NATS.URL}, Key: opened.Cluster().Key, Log: log})
	if err != nil {
		_ = opened.Close()
		c.t.Fatalf("open the bus of %s: %v", name, err)
	}
	return opened, nats, func() { _, _ = nats.Close(), opened.Close() }, log
}

// finish ends the test's cluster: verification first, while the owners still hold their state.
func (c *Cluster) finish() {
	c.Verify()
	for _, client := range c.clients {
		client.Stop()
	}
	var stopping sync.WaitGroup
	for _, n := range c.running() {
		stopping.Go(n.Stop)
	}
	stopping.Wait()
	if !c.killed {
		c.checkNothingLeft()
	}
	if c.files != nil {
		if err := c.files.close(); err != nil {
			c.t.Error(err)
		}
		c.files.verify(c.t)
	}
}

// running returns the nodes that have not been stopped.
func (c *Cluster) running() (all []*Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if !n.stopped() {
			all = append(all, n)
		}
	}
	return all
}

// AwaitSpread waits until every node that takes shards, and is not draining, serves its even share.
func (c *Cluster) AwaitSpread() {
	c.t.Helper()
	Await(c.t, "an even spread of the shards", func() bool {
		owned := c.owned()
		for _, n := range c.running() {
			if n.owner && owned[n.SessionID()] < c.options.Shards/len(c.owners()) {
				return false
			}
		}
		return true
	})
}

func (c *Cluster) owners() (all []*Node) {
	for _, n := range c.running() {
		if n.owner {
			all = append(all, n)
		}
	}
	return all
}

// owned counts the shards that each session serves, by what the owners themselves say.
func (c *Cluster) owned() map[string]int {
	count := map[string]int{}
	running := c.running()
	if len(running) == 0 {
		return count
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	shards, err := running[0].Operations().Shards(ctx)
	if err != nil {
		return nil
	}
	for _, s := range shards {
		if s.Problem == "" {
			count[s.Owner]++
		}
	}
	return count
}

// Await polls until the condition holds, and fails the test when it does not in time.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(timeout)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s: not within %s", what, timeout)
		}
	}
}
