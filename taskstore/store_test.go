package taskstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/taskstore"
	"taskledger/taskstore/taskstoretest"
)

func TestStore_KeepsThePromisesOfTaskStores(t *testing.T) {
	for _, noNATS := range []bool{false, true} {
		t.Run(fmt.Sprint("no-nats=", noNATS), func(t *testing.T) {
			c := testcluster.New(t, testcluster.Options{NoNATS: noNATS, Shards: 4})
			n, client := c.StartNode("a", nil), c.StartClient("b", nil)
			var stores atomic.Int64
			taskstoretest.Run(t, func(t *testing.T) (one, other taskstoretest.Store) {
				name := fmt.Sprint("s", stores.Add(1))
				a, err := taskstore.Open(n, name, 0)
				ok(t, err)
				b, err := taskstore.Open(client, name, 0)
				ok(t, err)
				return a, b
			})
		})
	}
}
