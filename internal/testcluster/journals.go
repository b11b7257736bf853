package testcluster

import (
	"fmt"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/etcdstore"
	"taskledger/store"
)

// maxRewritten is more entries than a test writes into a journal that it replaces.
const maxRewritten = 100

// filledAtOnce is the number of entries written with one request. etcd takes at most 128.
const filledAtOnce = 100

// Journals reads and changes the journals of a cluster on an etcd of its own, for a test that damages them.
type Journals struct {
	Store *etcdstore.Store // closed when the test ends

	t    testing.TB
	etcd *clientv3.Client
}

// StartJournals starts an etcd and creates a cluster of so many shards on it.
func StartJournals(t testing.TB, shards int) *Journals {
	t.Helper()
	_, etcd := StartEtcd(t)
	opened, err := etcdstore.Open(Within(t), etcdstore.Config{Client: etcd, Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return &Journals{Store: opened, t: t, etcd: etcd}
}

// Records returns the journal of a shard.
func (j *Journals) Records(shard int) (all []store.Record) {
	j.t.Helper()
	for rec, err := range j.Store.Read(Within(j.t), shard, 1) {
		if err != nil {
			j.t.Fatal(err)
		}
		all = append(all, rec)
	}
	return all
}

// Replace makes the journal of a shard what the records say.
func (j *Journals) Replace(shard int, all []store.Record) {
	j.t.Helper()
	for number := range uint64(maxRewritten) {
		j.Remove(shard, number+1)
	}
	for _, rec := range all {
		if _, err := j.etcd.Put(Within(j.t), entryKey(shard, rec.Number), string(rec.Data)); err != nil {
			j.t.Fatal(err)
		}
	}
}

// Fill writes entries into the journal of a shard, many at a time.
func (j *Journals) Fill(shard int, all []store.Record) {
	j.t.Helper()
	for some := range slices.Chunk(all, filledAtOnce) {
		var puts []clientv3.Op
		for _, rec := range some {
			puts = append(puts, clientv3.OpPut(entryKey(shard, rec.Number), string(rec.Data)))
		}
		if _, err := j.etcd.Txn(Within(j.t)).Then(puts...).Commit(); err != nil {
			j.t.Fatal(err)
		}
	}
}

// Remove deletes an entry, if it is there.
func (j *Journals) Remove(shard int, number uint64) {
	j.t.Helper()
	if _, err := j.etcd.Delete(Within(j.t), entryKey(shard, number)); err != nil {
		j.t.Fatal(err)
	}
}

func entryKey(shard int, number uint64) string {
	return fmt.Sprintf("%sjournal/%d/%016x", prefix, shard, number)
}
