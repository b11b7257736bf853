package client_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/stores"
	"taskledger/api/token"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/taskstore/client"
	"taskledger/taskstore/taskstoretest"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(4)
	goleak.VerifyTestMain(m)
}

// secrets are known tokens by their secrets.
type secrets map[string]*token.Token

func (s secrets) Find(secret string) *token.Token { return s[secret] }

// serve serves the stores until the returned function is called, at a TCP address and a socket.
func serve(t *testing.T, of operations.Direct, address, socket string) (at string, stop func()) {
	t.Helper()
	a, err := api.New(api.Config{
		Client: of,
		Tokens: secrets{
			"submitter": {Name: "sam", Role: token.Submitter},
			"viewer":    {Name: "vera", Role: token.Viewer},
		},
		Version:      "test",
		Routes:       stores.Routes(of.Stores()),
		ErrorFormats: []api.ErrorFormat{stores.ErrorFormat()},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l, u) }()
	return l.Addr().String(), sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

func open(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// The API of one node is asked, and the stores are owned by that or another one.
func TestClient_KeepsThePromisesOverHTTPAndOverASocket(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 4})
	a := c.StartNode("a", nil)
	c.StartNode("b", nil)
	socket := filepath.Join(t.TempDir(), "s")
	at, stop := serve(t, operations.Direct{Client: a.Client}, "127.0.0.1:0", socket)
	t.Cleanup(func() { stop() })
	restart := func(*testing.T) { // of the API and the node that serves it
		stop()
		a.Stop()
		a = c.StartNode("a", nil)
		_, stop = serve(t, operations.Direct{Client: a.Client}, at, socket)
	}
	// What restarts nothing runs side by side when both have begun.
	for _, s := range []taskstoretest.Subject{
		{Name: "http", Backend: open(t, client.Options{URL: "http://" + at, Token: "submitter"}), Restart: restart},
		{Name: "socket", Backend: open(t, client.Options{URL: "unix:" + socket, Token: "submitter"})},
	} {
		s.Slack = 5 * time.Second
		taskstoretest.Run(t, s)
	}
}
