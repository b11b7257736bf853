package testcluster

import (
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Strays implements storetest.Strays on the keys of a cluster as package etcdstore lays them out.
type Strays struct {
	T       testing.TB
	Etcd    *clientv3.Client
	Cluster string // its name; "" = the default one
}

func (s Strays) put(data, format string, args ...any) (key string) {
	s.T.Helper()
	key = prefix
	if s.Cluster != "" {
		key = s.Cluster + "/"
	}
	key += fmt.Sprintf(format, args...)
	if _, err := s.Etcd.Put(Within(s.T), key, data); err != nil {
		s.T.Fatal(err)
	}
	return key
}

// Entry is described in storetest.Strays.
func (s Strays) Entry(shard int, number uint64, data string) string {
	s.T.Helper()
	return s.put(data, "journal/%d/%016x", shard, number)
}

// NoEntry is described in storetest.Strays.
func (s Strays) NoEntry(shard int, data string) string {
	s.T.Helper()
	return s.put(data, "journal/%d/stray", shard)
}

// OfShard is described in storetest.Strays.
func (s Strays) OfShard(shard int) (keys []string) {
	s.T.Helper()
	for _, format := range []string{"owner/%d", "journal/%d/0000000000000001", "snapshot/%d", "snapshot/%d/0000000000000001-1/00000000",
		"lost/%d", "mailbox/%d/s/0"} {
		keys = append(keys, s.put("stray", format, shard))
	}
	return keys
}

// Node is described in storetest.Strays.
func (s Strays) Node(id, data string) string {
	s.T.Helper()
	return s.put(data, "node/%s", id)
}
