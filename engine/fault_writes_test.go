package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/testcluster"
)

// errLost is what a sender sees of a lost request or reply: it says nothing about the outcome.
var errLost = status.Error(codes.Unavailable, "reply lost")

// flaky is a clientv3.KV that loses requests and replies of writing transactions at random, and delivers copies of them
// seconds later, after whatever came in between.
type flaky struct {
	clientv3.KV
	faulty atomic.Bool
	late   sync.WaitGroup // copies under way

	lost, effective atomic.Int64 // replies lost; late copies that changed something
}

func (f *flaky) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if !f.faulty.Load() || !writing(op) {
		return f.KV.Do(ctx, op)
	}
	switch p := rand.Float64(); {
	case p < 0.05: // the request is lost
		f.lost.Add(1)
		return clientv3.OpResponse{}, errLost
	case p < 0.10: // the reply is
		_, _ = f.KV.Do(ctx, op)
		f.lost.Add(1)
		return clientv3.OpResponse{}, errLost
	case p < 0.15: // the request is delivered late
		f.deliverLate(op)
		f.lost.Add(1)
		return clientv3.OpResponse{}, errLost
	case p < 0.20: // and twice
		f.deliverLate(op)
	}
	return f.KV.Do(ctx, op)
}

// deliverLate applies a copy when much else has been applied. A copy that replaces an unknown write may have an effect
// once; what is counted are the entries that appear so.
func (f *flaky) deliverLate(op clientv3.Op) {
	f.late.Add(1)
	time.AfterFunc(rand.N(3*time.Second), func() {
		defer f.late.Done()
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if resp, err := f.KV.Do(ctx, op); err == nil && resp.Txn().Succeeded {
			f.effective.Add(1)
		}
	})
}

func writing(op clientv3.Op) bool {
	_, then, otherwise := op.Txn()
	for _, o := range append(then[:len(then):len(then)], otherwise...) {
		if o.IsPut() || o.IsDelete() {
			return true
		}
	}
	return false
}

// flakyStore opens a store behind a flaky KV on the cluster's etcd.
func flakyStore(t *testing.T, c *testcluster.Cluster) (*etcdstore.Store, *flaky) {
	t.Helper()
	client := clientv3.NewCtxClient(context.Background())
	f := &flaky{KV: c.Etcd.KV}
	client.KV, client.Lease, client.Watcher, client.Maintenance, client.Cluster = f, c.Etcd.Lease, c.Etcd.Watcher, c.Etcd.Maintenance, c.Etcd.Cluster
	store, err := etcdstore.Open(within(t), etcdstore.Config{Client: client, Shards: c.Shards()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store, f
}

// worker is a behavior that counts its attempts by task and returns the task's id.
type worker struct {
	policy   engine.Policy
	mu       sync.Mutex
	attempts map[events.TaskID]int
}

func (w *worker) ID() string                                  { return "work" }
func (w *worker) Types() string                               { return "" }
func (w *worker) Policy() engine.Policy                       { return w.policy }
func (w *worker) Plan([]byte, time.Time) (engine.Plan, error) { return engine.Plan{}, nil }

func (w *worker) Run(_ context.Context, a engine.Attempt) engine.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[a.Task]++
	if w.attempts[a.Task] == 1 && strings.HasPrefix(string(a.Task), "retried") {
		return engine.Outcome{Err: &events.Error{Code: "first", Retryable: true}, Next: time.Now()}
	}
	return engine.Outcome{Result: []byte(strconv.Quote(string(a.Task)))}
}

func (w *worker) Merge(stored, requested []byte) ([]byte, error) {
	x, err := strconv.Atoi(string(stored))
	if err != nil {
		return nil, err
	}
	y, err := strconv.Atoi(string(requested))
	return []byte(strconv.Itoa(x + y)), err
}

// Three nodes work while one write in five is lost, answered in vain, or applied seconds later; one of them leaves and
// another comes. Nothing is lost, nothing runs or ends twice, and the journals are whole (the cluster verifies them).
func TestFaults_WritesOfUnknownOutcomeLoseAndDoubleNothing(t *testing.T) {
	for name, o := range map[string]testcluster.Options{"nats": {}, "no-nats": {NoNATS: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.TTL = 10 * time.Second
			c := testcluster.New(t, o)
			s := newStorm(t, c)
			s.node("a", noSlots)
			s.node("b", nil)
			leaving := s.node("c", nil)
			client := c.StartClient("caller", s.behind)
			s.faulty(true)
			var all sync.WaitGroup
			for kind, work := range s.workloads(client.Client) {
				all.Go(func() {
					for i := range 15 {
						work(events.TaskID(fmt.Sprint(kind, i)))
					}
				})
			}
			leaving.Stop()
			s.node("d", nil)
			all.Wait()
			s.faulty(false)
			s.settle()
		})
	}
}

// storm is a cluster whose members all write through flaky stores.
type storm struct {
	*testing.T
	c      *testcluster.Cluster
	w      *worker
	mu     sync.Mutex
	stores []*flaky
	on     bool
}

func newStorm(t *testing.T, c *testcluster.Cluster) *storm {
	return &storm{T: t, c: c, w: &worker{attempts: map[events.TaskID]int{}}}
}

func (s *storm) store() engine.Store {
	store, f := flakyStore(s.T, s.c)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.faulty.Store(s.on)
	s.stores = append(s.stores, f)
	return store
}

func (s *storm) node(name string, configure func(*cfg)) *testcluster.Node {
	return s.c.StartNode(name, func(c *cfg) {
		c.Store = s.store()
		if configure != nil {
			configure(c)
		}
	}, s.w)
}

func (s *storm) behind(c *engine.ClientConfig) { c.Store = s.store() }

func (s *storm) faulty(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
	for _, f := range s.stores {
		f.faulty.Store(on)
	}
}

// settle waits for the copies that are still under way; none may have an effect any more when the test ends.
func (s *storm) settle() {
	var lost, late int64
	for _, f := range s.stores {
		f.late.Wait()
		lost += f.lost.Load()
		late += f.effective.Load()
	}
	if lost == 0 {
		s.Error("no write was lost: nothing was tested")
	}
	s.Logf("%d writes had no answer, %d were applied late", lost, late)
}

// workloads are what a caller does with a task of its own, each with what must have become of it in the end.
func (s *storm) workloads(client *engine.Client) map[string]func(events.TaskID) {
	submit := func(id events.TaskID, later time.Duration) *engine.Future {
		at := time.Time{}
		if later > 0 {
			at = time.Now().Add(later)
		}
		f, err := client.Submit(within(s.T), s.w, []byte("1"), engine.SubmitOptions{ID: id, NotBefore: at})
		if err != nil {
			s.Errorf("submit %s: %v", id, err)
		}
		return f
	}
	must := func(id events.TaskID, what string, err error) {
		if err != nil {
			s.Errorf("%s %s: %v", what, id, err)
		}
	}
	done := func(id events.TaskID, f *engine.Future, attempts int) {
		got, err := f.Wait(within(s.T))
		if err != nil || string(got) != strconv.Quote(string(id)) {
			s.Errorf("task %s: %s, %v", id, got, err)
		}
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		if n := s.w.attempts[id]; n != attempts {
			s.Errorf("task %s: %d attempts, want %d", id, n, attempts)
		}
	}
	return map[string]func(events.TaskID){
		"plain":   func(id events.TaskID) { done(id, submit(id, 0), 1) },
		"retried": func(id events.TaskID) { done(id, submit(id, 0), 2) },
		"cancelled": func(id events.TaskID) {
			f := submit(id, time.Hour)
			must(id, "cancel", client.Cancel(within(s.T), id, ""))
			if _, err := f.Wait(within(s.T)); !errors.Is(err, engine.ErrCancelled) {
				s.Errorf("task %s: %v, want %v", id, err, engine.ErrCancelled)
			}
		},
		"merged": func(id events.TaskID) {
			submit(id, time.Hour)
			submit(id, time.Hour)
			f := submit(id, time.Hour)
			task, err := client.GetLinear(within(s.T), id)
			must(id, "get", err)
			if text, err := task.Params.JSON(); err != nil || string(text) != "3" {
				s.Errorf("task %s: parameters %s, %v after three submits of 1", id, text, err)
			}
			must(id, "run", client.RunNow(within(s.T), id))
			done(id, f, 1)
		},
		"again": func(id events.TaskID) {
			done(id, submit(id, 0), 1)
			must(id, "retry", client.Retry(within(s.T), id))
			done(id, client.Attach(id), 2)
			must(id, "delete", client.Delete(within(s.T), id))
			done(id, submit(id, 0), 3)
		},
	}
}
