package etcdstore_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/store/storetest"
)

func TestStore_KeepsTheContractInProcess(t *testing.T) {
	t.Parallel()
	_, client := testcluster.StartEtcd(t)
	conform(t, client, etcdstore.Config{Client: client})
}

func TestStore_KeepsTheContractOverTheNetwork(t *testing.T) {
	t.Parallel()
	endpoint, client := testcluster.StartEtcd(t)
	conform(t, client, etcdstore.Config{Endpoints: []string{endpoint}})
}

func conform(t *testing.T, raw *clientv3.Client, cfg etcdstore.Config) {
	storetest.Run(t, fresh(raw, cfg))
}

// conformToSome is conform in a proof, else with every nth rule.
func conformToSome(t *testing.T, nth int, raw *clientv3.Client, cfg etcdstore.Config) {
	storetest.RunSome(t, nth, fresh(raw, cfg))
}

// fresh returns what opens a new cluster, twice, each time that it is called.
func fresh(raw *clientv3.Client, cfg etcdstore.Config) func(t *testing.T) storetest.Fixture {
	var clusters atomic.Int32
	return func(t *testing.T) storetest.Fixture {
		cfg := cfg
		cfg.Cluster = fmt.Sprint("c", clusters.Add(1))
		return storetest.Fixture{A: openStore(t, cfg), B: openStore(t, cfg),
			Strays: testcluster.Strays{T: t, Etcd: raw, Cluster: cfg.Cluster}}
	}
}

func TestOpen_CreatesTheClusterOnce(t *testing.T) {
	t.Parallel()
	_, client := testcluster.StartEtcd(t)
	first := openStore(t, etcdstore.Config{Client: client, Shards: 4})
	if n := first.Cluster().Shards; n != 4 {
		t.Errorf("%d shards, want 4", n)
	}
	for _, shards := range []int{0, 4} {
		again := openStore(t, etcdstore.Config{Client: client, Shards: shards})
		if got, want := again.Cluster(), first.Cluster(); got.ID != want.ID || got.Shards != 4 || string(got.Key) != string(want.Key) {
			t.Errorf("cluster is %+v, want %+v", got, want)
		}
	}
	other := openStore(t, etcdstore.Config{Client: client, Cluster: "other"})
	if got := other.Cluster(); got.ID == first.Cluster().ID || got.Shards != 16 {
		t.Errorf("another cluster is %+v", got)
	}
	_, err := etcdstore.Open(t.Context(), etcdstore.Config{Client: client, Shards: 8})
	wantError(t, err, "8 shards asked for, but the cluster was created with 4")
}

// A meta record that is gone must not be made anew: shards, ids and key would be others.
func TestOpen_CreatesNoClusterOverTheKeysOfAnother(t *testing.T) {
	t.Parallel()
	_, client := testcluster.StartEtcd(t)
	keys := etcdstore.KeysOf("lost")
	first := openStore(t, etcdstore.Config{Client: client, Cluster: "lost"}).Cluster()
	meta, err := client.Get(t.Context(), keys.Meta())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), keys.Entry(3, 1), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Delete(t.Context(), keys.Meta()); err != nil {
		t.Fatal(err)
	}
	_, err = etcdstore.Open(t.Context(), etcdstore.Config{Client: client, Cluster: "lost", Shards: 4})
	wantError(t, err, "there is no key lost/meta, but there are others under lost/, lost/journal/3/0000000000000001 for one")
	_, err = etcdstore.Open(t.Context(), etcdstore.Config{Client: client, Cluster: "lost", Existing: true})
	wantError(t, err, "there is no key lost/meta, but there are others under lost/")
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, etcdstore.ErrNoCluster) {
		t.Errorf("to look at a cluster that has lost its key: %v", err)
	}
	if _, err := client.Put(t.Context(), keys.Meta(), string(meta.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	if again := openStore(t, etcdstore.Config{Client: client, Cluster: "lost"}).Cluster(); again.ID != first.ID {
		t.Errorf("cluster %s after %s was restored", again.ID, first.ID)
	}
}

func TestOpen_RefusesAConfigurationOutOfRange(t *testing.T) {
	t.Parallel()
	endpoints := []string{"127.0.0.1:1"}
	for want, cfg := range map[string]etcdstore.Config{
		"cluster name":      {Endpoints: endpoints, Cluster: "Upper"},
		"of [a-z0-9-]":      {Endpoints: endpoints, Cluster: strings.Repeat("x", 65)},
		"12 shards":         {Endpoints: endpoints, Shards: 12},
		"512 shards":        {Endpoints: endpoints, Shards: 512},
		"-1 shards":         {Endpoints: endpoints, Shards: -1},
		"request time-out":  {Endpoints: endpoints, RequestTimeout: 1},
		"either endpoints":  {},
		"no other endpoint": {Endpoints: []string{"unix:a", "unix:b"}},
		"path of a socket":  {Endpoints: []string{"unix://"}},
		"no TLS with":       {Dial: func(context.Context) (net.Conn, error) { return nil, nil }, TLS: new(tls.Config)},
		"quota -1":          {Endpoints: endpoints, Quota: -1},
	} {
		_, err := etcdstore.Open(t.Context(), cfg)
		wantError(t, err, want)
	}
}

func TestOpen_RefusesAnUnreadableMetaRecord(t *testing.T) {
	t.Parallel()
	_, client := testcluster.StartEtcd(t)
	for want, value := range map[string]string{
		"malformed":        "\xc1",
		"format version 4": "\x92\x04\x01",
		"base 0":           string(etcdstore.EncodeCopiedMeta(4, "x", make([]byte, 32), 0)),
		"base -1":          string(etcdstore.EncodeCopiedMeta(4, "x", make([]byte, 32), -1)),
		"format version 1, this release knows 2: it was created by a release before this one": "\x92\x01\x01",
		"3 shards":       string(etcdstore.EncodeMeta(3, "x", make([]byte, 32))),
		"key of 5 bytes": string(etcdstore.EncodeMeta(4, "x", make([]byte, 5))),
	} {
		if _, err := client.Put(t.Context(), etcdstore.KeysOf("bad").Meta(), value); err != nil {
			t.Fatal(err)
		}
		_, err := etcdstore.Open(t.Context(), etcdstore.Config{Client: client, Cluster: "bad"})
		wantError(t, err, want)
	}
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error is %v, want one with %q", err, text)
	}
}
