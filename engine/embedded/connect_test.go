package embedded_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"taskledger/engine/embedded"
	"taskledger/internal/testcluster"
)

func TestConnect_ClustersOfOtherNamesShareTheServersAndNothingElse(t *testing.T) {
	t.Parallel()
	servers := start(t, embedded.ServersConfig{})
	conn, err := nats.Connect(servers.NATSURL(), nkey(t, servers))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ids := map[string]bool{}
	for name, prefix := range map[string]string{"": "taskledger", "blue": "blue"} {
		heard, err := conn.SubscribeSync(prefix + ".completed.>")
		if err == nil {
			err = conn.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := servers.Connect(t.Context(), name, 4, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ids[c.Store.Cluster().ID] = true
		if get(t, servers.EtcdClient(), prefix+"/meta") == "" {
			t.Errorf("no keys below %s/", prefix)
		}
		testcluster.Await(t, "connection", func() bool { return c.Bus.Publish("completed.noop.SUCCESS", "", nil) == nil })
		if _, err := heard.NextMsg(10 * time.Second); err != nil {
			t.Errorf("subject %s.>: %v", prefix, err)
		}
	}
	if len(ids) != 2 {
		t.Errorf("clusters %v, want two", ids)
	}
}
