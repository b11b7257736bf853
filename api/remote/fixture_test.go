package remote_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/logs"
	"taskledger/api/operations"
	"taskledger/api/remote"
	"taskledger/api/schedules"
	"taskledger/api/stores"
	"taskledger/api/works"
	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/local"
	"taskledger/task"
	"taskledger/tasklog/memlog"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// echo returns its parameters, and writes a line.
var echo = behaviors.Define("echo", &behaviors.Rules[map[string]any, map[string]any]{})

// fail fails for good.
var fail = behaviors.Define[string, string]("fail", nil)

// hourly runs again an hour after each success.
var hourly = behaviors.Define("hourly", &behaviors.Rules[string, string]{
	AfterSuccess: func(_, _ string, now time.Time) time.Time { return now.Add(time.Hour) },
})

// halves is a work of ten buckets; the item 7 fails.
var halves = work.Define("halves", nil, work.Partition[struct{}, int64]{
	ID:   "all",
	Mode: work.Full,
	Items: func(_ context.Context, _ struct{}, b work.Bucket) iter.Seq2[int64, error] {
		return func(yield func(int64, error) bool) {
			for n := b.From; n < b.To && yield(n, nil); n++ {
			}
		}
	},
	Process: func(_ context.Context, n int64) error {
		if n == 7 {
			return errors.New("seven")
		}
		return nil
	},
	Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 100, Buckets: 10},
})

// fixture holds a node and its API, and clients of both.
type fixture struct {
	node   *local.Node
	api    *api.API
	socket string
	url    string
	stop   func() // ends the API
}

var silent = slog.New(slog.DiscardHandler)

func start(t *testing.T) *fixture {
	t.Helper()
	logged := func(ctx context.Context, p map[string]any) (map[string]any, error) {
		a, _ := behaviors.Attempt(ctx)
		a.Log.Info("echoing")
		return p, nil
	}
	fails := func(context.Context, string) (string, error) {
		told := map[string]string{"file": "a"}
		return "", behaviors.Cancel(behaviors.Code("torn", errors.New("as asked"), told))
	}
	same := func(_ context.Context, p string) (string, error) { return p, nil }
	cfg := engine.NodeConfig{
		Name:      "a",
		Log:       silent,
		Logs:      memlog.New(),
		Behaviors: []task.Behavior{echo.Bind(logged), fail.Bind(fails), hourly.Bind(same), halves},
	}
	n, err := local.StartWith(t.Context(), local.Config{Node: cfg, WholeHistory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{node: n}
	f.serve(t)
	return f
}

// serve serves the API of the node at a socket and at a port.
func (f *fixture) serve(t *testing.T) {
	t.Helper()
	all := operations.Direct{Client: f.node.Client}
	a, err := api.New(api.Config{
		Client: all,
		Tokens: apitest.Everybody(nil),
		Routes: slices.Concat(
			stores.Routes(all.Stores()),
			schedules.Routes(all.Schedules(), all.Backfills()),
			logs.Routes(all),
			works.Routes(all.Works()),
		),
		ErrorFormats: []api.ErrorFormat{stores.ErrorFormat()},
		Log:          silent,
	})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "r") // short: a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "api")
	ul, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.api, f.socket, f.url = a, "unix:"+path, "http://"+tl.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, ul, tl) }()
	f.stop = func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		ended <- nil
	}
	t.Cleanup(f.stop)
}

func (f *fixture) open(t *testing.T, o remote.Options) *remote.Client {
	t.Helper()
	c, err := remote.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// clients returns a client of each kind.
func (f *fixture) clients(t *testing.T) map[string]operations.Client {
	t.Helper()
	return map[string]operations.Client{
		"direct": operations.Direct{Client: f.node.Client},
		"socket": f.open(t, remote.Options{URL: f.socket, Token: "admin"}),
		"url":    f.open(t, remote.Options{URL: f.url + "/", Token: "admin"}),
	}
}
