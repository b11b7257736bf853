package fault

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/integration/robustness/cluster"
	"taskledger/internal/testcluster"
)

// isolated returns a node in a namespace, whose links lead to a server that sends back what it gets; nil where there are no
// namespaces.
func isolated(t *testing.T) *cluster.Node {
	t.Helper()
	if cluster.CannotLosePackets() != nil {
		return nil
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	})
	address := server.Addr().String()
	c := &cluster.Servers{Members: []*cluster.Member{{Listens: address}}, NATS: &cluster.NATSServer{Address: address}}
	in, err := cluster.NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.NewLinks(in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, l := range l.All() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		_ = server.Close()
		serving.Wait()
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return &cluster.Node{Links: l}
}

// talk sends on a link of the node, and reads what comes back, all the time; heard is told of every byte.
func talk(t *testing.T, n *cluster.Node, l *testcluster.Link) (heard chan struct{}) {
	t.Helper()
	var conn net.Conn
	err := n.In.Do(func() (err error) {
		conn, err = net.Dial("tcp", l.Address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	heard = make(chan struct{}, 1)
	var talking sync.WaitGroup
	talking.Go(func() {
		for err := error(nil); err == nil; time.Sleep(10 * time.Millisecond) {
			_, err = conn.Write([]byte{1})
		}
	})
	talking.Go(func() {
		for one := make([]byte, 1); ; {
			if _, err := conn.Read(one); err != nil {
				return
			}
			select {
			case heard <- struct{}{}:
			default:
			}
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		talking.Wait()
	})
	return heard
}

func hears(t *testing.T, heard chan struct{}) {
	t.Helper()
	select {
	case <-heard:
	case <-time.After(30 * time.Second):
		t.Error("nothing is heard")
	}
}

func TestFault_PacketsLostProvesWhatItDropped(t *testing.T) {
	for _, f := range Kinds {
		if !f.needs.Has(cluster.NeedNamespace) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			n := isolated(t)
			if n == nil {
				if why := f.Cannot(3); !strings.Contains(why, cluster.CannotLosePackets().Error()) {
					t.Errorf("it cannot run: %q", why)
				}
				return
			}
			d := disturbance{node: n, duration: 100 * time.Millisecond, random: rand.New(rand.NewPCG(1, 0))}
			if _, proof, err := f.inflict(t.Context(), nil, d); err != nil || proof != "" {
				t.Errorf("without traffic it proves %q, %v", proof, err)
			}
			etcd, nats := talk(t, n, n.ToEtcd[0]), talk(t, n, n.ToNATS)
			hears(t, etcd)
			hears(t, nats)
			_, proof, err := f.inflict(t.Context(), nil, d)
			if err != nil || !strings.Contains(proof, "packets") {
				t.Errorf("it proves %q, %v", proof, err)
			}
			noRequests, noReplies := strings.Contains(proof, " 0 packets to"), strings.Contains(proof, " 0 from")
			if noRequests != (f.Name == "packets-lost-from-servers") || f.Name == "packets-lost-to-servers" && !noReplies || noRequests && noReplies {
				t.Errorf("it proves %q", proof)
			}
			for range 2 { // the first may have waited since before
				hears(t, etcd)
				hears(t, nats)
			}
		})
	}
}

// A run that is interrupted stops at links that work.
func TestFault_PacketsLostHealsWithItsContext(t *testing.T) {
	n := isolated(t)
	if n == nil {
		return // the test above holds then
	}
	heard := talk(t, n, n.ToEtcd[0])
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := losePackets(toAll, bothWays)(ctx, nil, disturbance{node: n, duration: time.Hour}); err != nil {
		t.Error(err)
	}
	hears(t, heard)
	hears(t, heard)
}
