package taskstore_test

import (
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/taskstore"
	"taskledger/taskstore/taskstoretest"
)

func TestStore_OverAnEngineKeepsThePromisesOfATaskStore(t *testing.T) {
	node := testcluster.New(t, testcluster.Options{Shards: 4}).StartNode("a", nil)
	taskstoretest.Run(t, func(t *testing.T, name string) *taskstore.Store {
		s, err := taskstore.Open(node, name, taskstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
