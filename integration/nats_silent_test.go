package integration_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
)

// silentBus returns a bus that has just begun to connect to a NATS that takes connections and never says a word.
func silentBus(t *testing.T) engine.Bus {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dialed := make(chan struct{})
	tell := sync.OnceFunc(func() { close(dialed) })
	bus, err := natsbus.Open(natsbus.Config{URLs: []string{"nats://silent:4222"}, Key: make([]byte, natsbus.KeyBytes),
		Dial: func(ctx context.Context) (net.Conn, error) {
			defer tell()
			return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listener.Close() // which ends its connections
		_ = bus.Close()
	})
	<-dialed
	return bus
}

// Each attempt to connect takes the client of NATS 2 s, for which it makes no subscription.
func TestNATS_HostThatIsSilentHoldsUpNobody(t *testing.T) {
	t.Parallel()
	buses := []engine.Bus{silentBus(t), silentBus(t)} // they end after who uses them
	c := testcluster.New(t, testcluster.Options{TTL: lasting, NoNATS: true, Shards: 2})
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	n := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Bus = buses[0] }, w.on("a"))
	client := c.StartClient("caller", func(cfg *engine.ClientConfig) { cfg.Bus = buses[1] })
	began := time.Now()
	for i, to := range []behaviors.Client{n, client} {
		for task := range 4 {
			f := w.submit(t, to, fmt.Sprintf("x%d-%d", i, task))
			w.next(t).succeed("done")
			want(t, f, "done")
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the first tasks took %s", took)
	}
}
