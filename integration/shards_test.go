package integration_test

import (
	"testing"

	"taskledger/behaviors"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/store"
)

// A cluster of as many shards as there can be is shared by its nodes, runs tasks of all of them, and is taken over by
// who stays.
func TestShards_AsManyAsThereCanBeAreSharedAndTakenOver(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c := testcluster.New(t, testcluster.Options{Shards: store.MaxShards})
	l := defineTally(&behaviors.Rules[string, string]{TaskID: idFromParams})
	nodes := c.StartNodes(nil, l.on, "a", "b")
	c.AwaitSpread()
	submitAll := func(name string) {
		t.Helper()
		var all []*behaviors.Future[string]
		for shard := range store.MaxShards {
			f, err := l.Submit(within(t, soon), nodes[0], string(testcluster.IDIn(shard, store.MaxShards))+"/"+name)
			ok(t, err)
			all = append(all, f)
		}
		for _, f := range all {
			want(t, f, string(f.ID())+" ran 1")
		}
	}
	submitAll("shared")
	nodes[1].Stop()
	submitAll("taken-over")
	l.wantOnce(t, nodes[0].Client, 2*store.MaxShards)
}
