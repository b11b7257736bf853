package cluster_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/behaviors/builtin"
	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/internal/connection"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/archivetest"
	"taskledger/task"
)

func open(t *testing.T, cfg cluster.Config) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// running runs a node or a client until the test ends.
func running(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// submit runs a task to its end.
func submit(t *testing.T, c *engine.Client) {
	t.Helper()
	f, err := c.Submit(t.Context(), builtin.Noop(), nil, task.SubmitOptions{})
	if err == nil {
		_, err = f.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func startNode(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	node, err := c.NewNode(engine.NodeConfig{Behaviors: []task.Behavior{builtin.Noop()}, TTL: engineTTL})
	if err != nil {
		t.Fatal(err)
	}
	running(t, node.Run)
}

func startClient(t *testing.T, c *cluster.Cluster) *engine.Client {
	t.Helper()
	client, err := c.NewClient(engine.ClientConfig{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	running(t, client.Run)
	return client
}

func TestOpen_OneNameForStoreBusAndArchive(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	nats := testcluster.StartJetStream(t)
	cfg := cluster.Config{Name: "blue", Shards: 2, Etcd: []string{endpoint}, NATS: []string{nats.URL},
		Archive: natsbus.ArchiveConfig{DurableAfter: -1}}
	c := open(t, cfg)
	startNode(t, c)
	cfg.Shards, cfg.Existing = 0, true
	there := open(t, cfg)
	submit(t, startClient(t, there))
	entries := archivetest.Entries(t, 1, 1, 3)
	if _, err := c.Archive.Archive(t.Context(), 1, store.ArchiveHead{}, entries); err != nil {
		t.Fatal(err)
	}
	got, err := archivetest.Collect(there.Archive.ReadArchive(t.Context(), 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, entries)
	cfg.Name = "red"
	if _, err := cluster.Open(t.Context(), cfg); !errors.Is(err, etcdstore.ErrNoCluster) {
		t.Errorf("opened a cluster of another name: %v", err)
	}
}

// invalid reports whether err names the field.
func invalid(err error, field string) bool {
	wrong, ok := errors.AsType[*store.InvalidError](err)
	return ok && wrong.Field == field
}

func TestOpen_AClientWithoutEtcdSubmitsByTheKeyAlone(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	nats := []string{testcluster.StartNATS(t).URL}
	c := open(t, cluster.Config{Shards: 2, Etcd: []string{endpoint}, NATS: nats})
	startNode(t, c)
	of := c.Store.Cluster()
	away := open(t, cluster.Config{Key: of.Key, Shards: of.Shards, NATS: nats})
	if away.Store != nil {
		t.Error("it has a store")
	}
	client := startClient(t, away)
	testcluster.Await(t, "a submit over NATS alone", func() bool {
		f, err := client.Submit(t.Context(), builtin.Noop(), nil, task.SubmitOptions{ID: "x"})
		if err == nil {
			_, err = f.Wait(t.Context())
		}
		return err == nil
	})
}

// With fewer shards tasks would be sent to wrong ones, and with more to some that no cluster has.
func TestOpen_AClientByTheKeyLearnsThatItsShardsAreWrong(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	nats := []string{testcluster.StartNATS(t).URL}
	c := open(t, cluster.Config{Shards: 4, Etcd: []string{endpoint}, NATS: nats})
	startNode(t, c)
	key := c.Store.Cluster().Key
	for _, shards := range []int{1, 2, 8, 256} {
		away := open(t, cluster.Config{Key: key, Shards: shards, NATS: nats})
		client, err := away.NewClient(engine.ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- client.Run(testcluster.Within(t)) }()
		want := fmt.Sprintf("shards: %d, want 4: as many as the cluster has", shards)
		if err := <-ended; err == nil || !invalid(err, "shards") || err.Error() != want {
			t.Errorf("Run of a client of %d shards: %v, want %s", shards, err, want)
		}
		if _, err := client.Submit(t.Context(), builtin.Noop(), nil, task.SubmitOptions{}); !invalid(err, "shards") {
			t.Errorf("submit of a client of %d shards: %v", shards, err)
		}
		if _, err := client.Get(t.Context(), "x"); !invalid(err, "shards") {
			t.Errorf("get of a client of %d shards: %v", shards, err)
		}
	}
}

func TestOpen_NamesWhatIsMissingOrGivenTwice(t *testing.T) {
	t.Parallel()
	key, etcd, nats := make([]byte, 32), []string{"127.0.0.1:1"}, []string{"nats://127.0.0.1:1"}
	for field, cases := range map[string][]cluster.Config{
		"config": {{}, {NATS: nats}, {Etcd: etcd, Dir: "d"}, {Etcd: etcd, Key: key, NATS: nats, Shards: 4}},
		"etcd":   {{Dir: "d", EtcdTLS: new(tls.Config)}, {Dir: "d", EtcdUser: "u"}, {Dir: "d", EtcdPassword: "p"}},
		"nats": {{Dir: "d", NATS: nats}, {Dir: "d", NATSTLS: new(tls.Config)}, {Dir: "d", NATSUser: "u", NATSPassword: "p"}, {Dir: "d", NATSPassword: "p"},
			{Dir: "d", NATSCreds: "f"}, {Dir: "d", NATSNKey: "f"}, {Etcd: etcd, NATS: []string{"no url, secret"}}},
		"key":       {{Key: key}, {Key: key, NATS: nats}, {Key: key, Shards: 4}},
		"nats-user": {{Etcd: etcd, NATS: nats, NATSUser: "u"}},
	} {
		for i, cfg := range cases {
			if c, err := cluster.Open(t.Context(), cfg); !invalid(err, field) {
				t.Errorf("%s %d: %v, %v", field, i, c, err)
			}
		}
	}
}

func TestOpen_PrivateRefusesAnEtcdThatAsksForNothing(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end() // the refusal must come before any request
	ca := testcluster.NewAuthority(t)
	shown := ca.Issue("node").Pair
	asked := &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }}
	for name, is := range map[string]struct {
		cfg     cluster.Config
		refused bool
	}{
		"host and port":              {cluster.Config{Etcd: []string{"127.0.0.1:1"}}, true},
		"http":                       {cluster.Config{Etcd: []string{"http://etcd.test:1"}}, true},
		"a password in it":           {cluster.Config{Etcd: []string{"http://u:secret@etcd.test:1"}}, true},
		"one of two":                 {cluster.Config{Etcd: []string{"unix:/nowhere", "http://etcd.test:2"}}, true},
		"https":                      {cluster.Config{Etcd: []string{"https://etcd.test:1"}}, true},
		"TLS":                        {cluster.Config{Etcd: []string{"etcd.test:1"}, EtcdTLS: ca.Client()}, true},
		"a client certificate":       {cluster.Config{Etcd: []string{"etcd.test:1"}, EtcdTLS: ca.Client(ca.Issue("node"))}, false},
		"one that is got when asked": {cluster.Config{Etcd: []string{"https://etcd.test:1"}, EtcdTLS: asked}, false},
		"a user":                     {cluster.Config{Etcd: []string{"127.0.0.1:1"}, EtcdUser: "u", EtcdPassword: "secret"}, false},
	} {
		is.cfg.Private = true
		_, err := cluster.Open(ended, is.cfg)
		if errors.Is(err, connection.ErrNotPrivate) != is.refused || err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The client of etcd goes without its user to one that asks for none.
func TestOpen_PrivateWantsTheUserToCount(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	off := cluster.Config{Etcd: []string{endpoint}, EtcdUser: "node", EtcdPassword: "hunter2"}
	c, err := cluster.Open(t.Context(), cluster.Config{Etcd: off.Etcd, EtcdUser: off.EtcdUser, EtcdPassword: off.EtcdPassword, Private: true})
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, connection.ErrNotPrivate) || !errors.Is(err, etcdstore.ErrAuthOff) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("opened where any user does: %v", err)
	}
	off.Existing = true
	if _, err := cluster.Open(t.Context(), off); !errors.Is(err, etcdstore.ErrNoCluster) {
		t.Errorf("who was refused has written: %v", err)
	}

	on := testcluster.StartSecureEtcd(t, testcluster.Security{RootPassword: "hunter2-root"})
	on.AddUser("node", "hunter2")
	on.Permit("node", "taskledger")
	open(t, cluster.Config{Etcd: []string{on.Endpoint}, EtcdUser: "node", EtcdPassword: "hunter2", Private: true})
}

func TestOpen_WithoutNATSHasNoBusAndNoArchive(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	c := open(t, cluster.Config{Shards: 1, Etcd: []string{endpoint}})
	if c.Bus != nil || c.Archive != nil {
		t.Errorf("bus %v, archive %v", c.Bus, c.Archive)
	}
	startNode(t, c)
	client := startClient(t, c)
	submit(t, client)
	if nodes, err := client.Operations().Nodes(t.Context()); err != nil || len(nodes) != 1 || !slices.Contains(nodes[0].Behaviors, "noop") {
		t.Errorf("nodes %+v, %v", nodes, err)
	}
}

// An etcd without the cluster, beside the archive of one of that name, has lost its data or is not the one that is
// meant: no other cluster begins there unless that is wanted, and its archive is not written to.
func TestOpen_CreatesNoClusterBesideTheArchiveOfAnother(t *testing.T) {
	t.Parallel()
	nats := testcluster.StartJetStream(t)
	at := func(endpoint string) cluster.Config {
		return cluster.Config{Shards: 2, Etcd: []string{endpoint}, NATS: []string{nats.URL}, Archive: natsbus.ArchiveConfig{DurableAfter: -1}}
	}
	full, _ := testcluster.StartEtcd(t)
	first := open(t, at(full))
	entries := testcluster.Life(t, "x", "noop", "node", 0)
	shard := int(testcluster.Decoded(t, entries[0].Data).Shard)
	head, err := first.Archive.Archive(t.Context(), shard, store.ArchiveHead{}, entries[:1])
	if err != nil {
		t.Fatal(err)
	}
	empty, etcd := testcluster.StartEtcd(t)
	refused := at(empty)
	if _, err := cluster.Open(t.Context(), refused); !errors.Is(err, cluster.ErrArchived) || !strings.Contains(err.Error(), first.Store.Cluster().ID) {
		t.Errorf("opened: %v", err)
	}
	if got, err := etcd.Get(t.Context(), "taskledger/meta"); err != nil || len(got.Kvs) > 0 {
		t.Errorf("a cluster was created: %v, %v", got, err)
	}
	again := open(t, at(full)) // one that is there is opened as before
	if got, err := again.Archive.Head(t.Context(), shard); err != nil || got != head {
		t.Errorf("the archive ends with %+v, %v; want %+v", got, err, head)
	}
	refused.New = true
	second := open(t, refused)
	if _, err := second.Archive.Head(t.Context(), shard); !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), first.Store.Cluster().ID) {
		t.Errorf("the archive of another cluster is read: %v", err)
	}
	if _, err := second.Archive.Archive(t.Context(), shard, head, entries[1:2]); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the archive of another cluster is written: %v", err)
	}
}

// Whoever knows the id of the cluster opens no other one, and creates none.
func TestOpen_ExpectsTheIDThatIsGiven(t *testing.T) {
	t.Parallel()
	endpoint, etcd := testcluster.StartEtcd(t)
	cfg := cluster.Config{Shards: 2, Etcd: []string{endpoint}, ID: "expected"}
	if _, err := cluster.Open(t.Context(), cfg); !errors.Is(err, etcdstore.ErrNoCluster) || !strings.Contains(err.Error(), "expected") {
		t.Errorf("opened: %v", err)
	}
	if got, err := etcd.Get(t.Context(), "taskledger/meta"); err != nil || len(got.Kvs) > 0 {
		t.Errorf("a cluster was created: %v, %v", got, err)
	}
	cfg.ID = ""
	id := open(t, cfg).Store.Cluster().ID
	cfg.ID = "expected"
	if _, err := cluster.Open(t.Context(), cfg); !errors.Is(err, etcdstore.ErrOtherCluster) || !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), "expected") {
		t.Errorf("opened: %v", err)
	}
	cfg.ID = id
	open(t, cfg)
}
