package taskstoretest_test

import (
	"testing"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/taskstore/taskstoretest"
)

// A client asks two nodes, of which one is replaced by a restart, whatever it owns.
func TestEngine(t *testing.T) {
	for name, o := range map[string]testcluster.Options{"NATS": {Shards: 4}, "no NATS": {Shards: 4, NoNATS: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testcluster.New(t, o)
			nodes := c.StartNodes(nil, nothing, "a", "b")
			restart := func(t *testing.T) {
				for _, n := range nodes {
					n.Stop()
				}
				nodes = c.StartNodes(nil, nothing, "a", "b")
			}
			taskstoretest.Run(t, taskstoretest.Subject{Backend: c.StartClient("client", nil).Stores(), Restart: restart, Slack: 5 * time.Second})
		})
	}
}

func nothing(string) []task.Behavior { return nil }
