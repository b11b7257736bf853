package collections_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	syncapi "taskledger/api/sync"
	"taskledger/api/token"
	"taskledger/behaviors"
	"taskledger/collections"
	"taskledger/collections/drivers"
	"taskledger/collections/taskjson"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

const (
	// soon bounds what should come at once, on a slow and busy machine.
	soon = 5 * time.Minute
	// workers bounds the runs of collections that a node makes at once.
	workers = 16
)

// The secrets of two submitters.
const (
	sam = "secret of sam"
	ada = "secret of ada"
)

var everybody = apitest.Secrets{
	sam: {Name: "sam", Role: token.Submitter},
	ada: {Name: "ada", Role: token.Submitter},
}

// world is a cluster of nodes, each with collections at the root of a listener. Their runs tell the test that they have
// started, and end as it tells them.
type world struct {
	*testing.T
	cluster *testcluster.Cluster
	nodes   []*testcluster.Node
	roots   []string // the URL of each node
	http    *http.Client
	started chan *run
	running atomic.Int64
	most    atomic.Int64 // runs at once
}

// run is an attempt that waits for the test.
type run struct {
	collection string
	attempt    task.Attempt
	ends       chan error
}

// Sync implements drivers.Driver.
func (w *world) Sync(ctx context.Context, of drivers.Run) error {
	now := w.running.Add(1)
	defer w.running.Add(-1)
	for most := w.most.Load(); now > most && !w.most.CompareAndSwap(most, now); most = w.most.Load() {
	}
	attempt, _ := behaviors.Attempt(ctx)
	r := &run{
		collection: of.Collection,
		attempt:    attempt,
		ends:       make(chan error, 1),
	}
	w.started <- r
	select {
	case err := <-r.ends:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newWorld starts a cluster of so many shards and nodes.
func newWorld(t *testing.T, shards int, names ...string) *world {
	t.Helper()
	w := &world{
		T:       t,
		cluster: testcluster.New(t, testcluster.Options{Shards: shards}),
		http:    &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}},
		started: make(chan *run, 10_000),
	}
	limited := func(cfg *engine.NodeConfig) { cfg.Limits = map[string]int{collections.Behavior: workers} }
	w.nodes = w.cluster.StartNodes(limited, func(node string) []task.Behavior {
		return []task.Behavior{drivers.Behavior(drivers.Options{
			Node: node,
			Go:   map[string]drivers.Driver{"held": w},
		})}
	}, names...)
	for _, n := range w.nodes {
		w.roots = append(w.roots, w.serve(n))
	}
	t.Cleanup(w.http.CloseIdleConnections)
	return w
}

// serve serves the collections of a node until the test ends, and returns the URL of their root.
func (w *world) serve(n *testcluster.Node) string {
	w.Helper()
	all := operations.Direct{Client: n.Client}
	a, err := api.New(api.Config{
		Client:       all,
		Tokens:       everybody,
		Version:      "test",
		Routes:       syncapi.Routes(all, all.Schedules()),
		ErrorFormats: []api.ErrorFormat{syncapi.ErrorFormat()},
		Log:          slog.New(slog.DiscardHandler),
	})
	w.must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx, api.Below(l, syncapi.Root)) }()
	w.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			w.Errorf("API of %s: %v", n.Name, err)
		}
	})
	return "http://" + l.Addr().String()
}

func (w *world) must(errs ...error) {
	w.Helper()
	if err := errors.Join(errs...); err != nil {
		w.Fatal(err)
	}
}

// set sets the collections of a file.
func (w *world) set(file string) {
	w.Helper()
	f, _, err := collections.Parse("sync.yaml", []byte(file))
	w.must(err)
	for _, c := range f.Collections {
		_, _, err := w.nodes[0].Client.Schedules().Set(w.within(), c.ID(), c.Definition(), 0)
		w.must(err)
	}
}

func (w *world) within() context.Context { return testcluster.Within(w) }

// answer holds the status and the members of an answer.
type answer struct {
	status int
	text   string
	taskjson.Task
	TaskID string `json:"task_id"`
}

// ask asks a node by its number, counted on and on; header is name and value by turns.
func (w *world) ask(node int, secret, method, path string, header ...string) (a answer) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.within(), method, w.roots[node%len(w.roots)]+path, nil)
	if err != nil {
		w.Error(err)
		return a
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := w.http.Do(r)
	if err != nil {
		w.Error(err)
		return a
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode < 300 {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		w.Errorf("%s %s: %s: %v", method, path, text, err)
	}
	a.status, a.text = resp.StatusCode, string(text)
	return a
}

// together asks n times at once, at each node in turn.
func (w *world) together(n int, ask func(i int) answer) []answer {
	all := make([]answer, n)
	var asking sync.WaitGroup
	for i := range all {
		asking.Go(func() { all[i] = ask(i) })
	}
	asking.Wait()
	return all
}

// show returns a run once it has a status.
func (w *world) show(id string, status taskjson.Status) (a answer) {
	w.Helper()
	testcluster.Await(w, id+" is "+string(status), func() bool {
		a = w.ask(0, sam, "GET", "/tasks/"+id)
		return a.Status == status
	})
	return a
}

// next returns the next run that starts.
func (w *world) next() *run {
	w.Helper()
	select {
	case r := <-w.started:
		return r
	case <-time.After(soon):
		w.Fatalf("no run has started within %s", soon)
		return nil
	}
}

// journal returns the events of a run that are of the given kinds, in order.
func (w *world) journal(id string, kinds ...events.Kind) (found []events.Kind) {
	w.Helper()
	inside, err := taskjson.Read(id)
	w.must(err)
	for ev, err := range w.nodes[0].Client.Ledger().History(w.within(), inside) {
		w.must(err)
		if slices.Contains(kinds, ev.Kind()) {
			found = append(found, ev.Kind())
		}
	}
	return found
}
