package client_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/stores"
	"taskledger/api/token"
	"taskledger/internal/testcluster"
	"taskledger/taskstore"
	"taskledger/taskstore/client"
	"taskledger/taskstore/taskstoretest"
)

type secrets map[string]*token.Token

func (s secrets) Find(secret string) *token.Token { return s[secret] }

var everybody = secrets{
	"submitter": {Name: "sam", Role: token.Submitter},
	"viewer":    {Name: "vera", Role: token.Viewer},
}

// serve serves the API of a node, and one of its stores, `one`, at a root of its own.
func serve(t *testing.T, c *testcluster.Cluster) (url, root string) {
	t.Helper()
	of := operations.Direct{Client: c.StartNode("a", nil).Client}
	a, err := api.New(api.Config{Client: of, Tokens: everybody, Version: "test", Routes: stores.Routes(of), Dialects: []api.Dialect{stores.Dialect()}})
	if err != nil {
		t.Fatal(err)
	}
	var l [2]net.Listener
	for i := range l {
		if l[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l[0], api.Below(l[1], "/store/one")) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "http://" + l[0].Addr().String(), "http://" + l[1].Addr().String()
}

// sender sends requests, and closes its connections at the end of the test.
func sender(t *testing.T) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func open(t *testing.T, cfg client.Config) *taskstore.Store {
	t.Helper()
	s, err := client.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClient_OverHTTPKeepsThePromisesOfATaskStore(t *testing.T) {
	url, _ := serve(t, testcluster.New(t, testcluster.Options{Shards: 4}))
	http := sender(t)
	taskstoretest.Run(t, func(t *testing.T, name string) *taskstore.Store {
		return open(t, client.Config{URL: url, Store: name, Token: "submitter", HTTP: http})
	})
}
