package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// worker is a behavior that counts its attempts by task and returns the task's id.
type worker struct {
	policy   task.Policy
	mu       sync.Mutex
	attempts map[events.TaskID]int
}

func (w *worker) ID() string { return "work" }

func (w *worker) Types() string { return "" }

func (w *worker) Policy() task.Policy { return w.policy }

func (w *worker) Plan([]byte, time.Time) (task.Plan, error) { return task.Plan{}, nil }

func (w *worker) Run(_ context.Context, a task.Attempt) task.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[a.Task]++
	if w.attempts[a.Task] == 1 && strings.HasPrefix(string(a.Task), "retried") {
		return task.Outcome{Err: &events.Error{Code: "first", Retryable: true}, Next: time.Now()}
	}
	return task.Outcome{Result: []byte(strconv.Quote(string(a.Task)))}
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
	faults []*testcluster.RandomFaults
	on     bool
}

func newStorm(t *testing.T, c *testcluster.Cluster) *storm {
	return &storm{T: t, c: c, w: &worker{attempts: map[events.TaskID]int{}}}
}

// store opens a store behind faults.
func (s *storm) store() store.Store {
	s.Helper()
	client, faults := testcluster.NewRandomFaults(s.c.Etcd)
	store, err := etcdstore.Open(within(s.T), etcdstore.Config{Client: client, Shards: s.c.Shards()})
	if err != nil {
		s.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	faults.Switch(s.on)
	s.faults = append(s.faults, faults)
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
	for _, f := range s.faults {
		f.Switch(on)
	}
}

// settle waits for the copies that are still under way, so that the cluster is verified after all of them. What
// they have put back into the mailbox is swept, and mail of the living with it, which must do no harm.
func (s *storm) settle() {
	var lost int64
	for _, f := range s.faults {
		lost += f.Settle()
	}
	if lost == 0 {
		s.Error("no answer was lost: nothing was tested")
	}
	s.Logf("%d writes had no answer", lost)
	store, err := etcdstore.Open(within(s.T), etcdstore.Config{Client: s.c.Etcd})
	if err != nil {
		s.Fatal(err)
	}
	_, now, err := store.SweepMailboxes(within(s.T), 0)
	if err == nil {
		_, _, err = store.SweepMailboxes(within(s.T), now)
	}
	if err != nil {
		s.Errorf("sweep: %v", err)
	}
}

// workloads returns the calls that a caller makes for a task of its own. Each checks the end of its task.
func (s *storm) workloads(client *engine.Client) map[string]func(events.TaskID) {
	submit := func(id events.TaskID, later time.Duration) *engine.Future {
		at := time.Time{}
		if later > 0 {
			at = time.Now().Add(later)
		}
		f, err := client.Submit(within(s.T), s.w, []byte("1"), task.SubmitOptions{ID: id, NotBefore: at})
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
			must(id, "cancel", client.Operations().Cancel(within(s.T), id, ""))
			if _, err := f.Wait(within(s.T)); !errors.Is(err, task.ErrCancelled) {
				s.Errorf("task %s: %v, want %v", id, err, task.ErrCancelled)
			}
		},
		"merged": func(id events.TaskID) {
			submit(id, time.Hour)
			submit(id, time.Hour)
			f := submit(id, time.Hour)
			task, err := client.GetLinear(within(s.T), id)
			must(id, "get", err)
			if string(task.Params) != "3" {
				s.Errorf("task %s: parameters %s after three submits of 1", id, task.Params)
			}
			must(id, "run", client.Operations().RunNow(within(s.T), id))
			done(id, f, 1)
		},
		"again": func(id events.TaskID) {
			done(id, submit(id, 0), 1)
			_, err := client.Operations().Retry(within(s.T), id)
			must(id, "retry", err)
			done(id, client.Attach(id), 2)
			must(id, "delete", client.Operations().Delete(within(s.T), id))
			done(id, submit(id, 0), 3)
		},
	}
}
