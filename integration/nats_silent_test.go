package integration_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
)

// silentConn is one of which an attempt to connect waits for a word until it is closed, and not for 2 s.
type silentConn struct{ net.Conn }

func (silentConn) SetDeadline(time.Time) error      { return nil }
func (silentConn) SetReadDeadline(time.Time) error  { return nil }
func (silentConn) SetWriteDeadline(time.Time) error { return nil }

// silentBus returns a bus that has just begun to connect to a NATS that takes connections and never says a word.
func silentBus(t *testing.T) store.Bus {
	t.Helper()
	near, far := net.Pipe()
	dialed := make(chan struct{}, 1)
	bus, err := natsbus.Open(natsbus.Config{URLs: []string{"nats://silent:4222"}, Key: make([]byte, natsbus.KeyBytes),
		Dial: func(context.Context) (net.Conn, error) {
			select {
			case dialed <- struct{}{}:
			default:
			}
			return silentConn{near}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = far.Close() // an end, from which on each attempt fails at once
		_ = bus.Close()
	})
	<-dialed
	return bus
}

// The client of NATS makes no subscription while it attempts to connect. That attempt lasts for as long as the test.
func TestNATS_HostThatIsSilentHoldsUpNobody(t *testing.T) {
	t.Parallel()
	buses := []store.Bus{silentBus(t), silentBus(t)} // they end after who uses them
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 2})
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	n := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Bus = buses[0] }, w.on("a"))
	client := c.StartClient("caller", func(cfg *engine.ClientConfig) { cfg.Bus = buses[1] })
	for i, to := range []behaviors.Client{n, client} {
		for task := range 4 {
			f := w.submit(t, to, fmt.Sprintf("x%d-%d", i, task))
			w.next(t).succeed("done")
			want(t, f, "done")
		}
	}
}
