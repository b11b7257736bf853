package integration_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/task"
)

// tally counts how often each task ran.
type tally struct {
	*behaviors.Behavior[string, string]
	mu   sync.Mutex
	runs map[string]int
}

func defineTally(rules *behaviors.Rules[string, string]) *tally {
	return &tally{Behavior: behaviors.Define("tally", rules), runs: map[string]int{}}
}

// run is the behavior; its result tells which of the runs of the task it was.
func (l *tally) run() task.Behavior {
	return l.Bind(func(_ context.Context, params string) (string, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.runs[params]++
		return fmt.Sprintf("%s ran %d", params, l.runs[params]), nil
	})
}

func (l *tally) on(string) []task.Behavior { return []task.Behavior{l.run()} }

// wantOnce asserts that count tasks ran, each once; at shows the history of one that did not.
func (l *tally) wantOnce(t *testing.T, at *engine.Client, count int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.runs) != count {
		t.Errorf("%d tasks ran, want %d", len(l.runs), count)
	}
	for params, n := range l.runs {
		if n != 1 {
			t.Errorf("task %s ran %d times: %v", params, n, history(t, at, events.TaskID(params)))
		}
	}
}

// flow submits tasks from several goroutines, and waits for each, until it is stopped.
type flow struct {
	submitted atomic.Int64
	stop      chan struct{}
	done      sync.WaitGroup
}

// startFlow begins a flow of deterministic ids through the members, by turns.
func startFlow(t *testing.T, l *tally, members ...behaviors.Client) *flow {
	return startFlowOf(t, l, load{atOnce: 8, params: func(name string) string { return name }}, members...)
}

// load describes a flow.
type load struct {
	atOnce int                      // goroutines
	pause  time.Duration            // of each, between two tasks
	params func(name string) string // of a task
}

func startFlowOf(t *testing.T, l *tally, of load, members ...behaviors.Client) *flow {
	f := &flow{stop: make(chan struct{})}
	for i := range of.atOnce {
		f.done.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-f.stop:
					return
				case <-time.After(of.pause):
				}
				name := fmt.Sprintf("task-%d-%d", i, n)
				p := of.params(name)
				future, err := l.Submit(within(t, soon), members[(i+n)%len(members)], p)
				if err != nil {
					t.Errorf("submit %s: %v", name, err)
					return
				}
				f.submitted.Add(1)
				want(t, future, p+" ran 1")
			}
		})
	}
	return f
}

// await lets the flow go on until it has submitted n more.
func (f *flow) await(t *testing.T, n int64) {
	t.Helper()
	goal := f.submitted.Load() + n
	testcluster.Await(t, fmt.Sprintf("%d submits", n), func() bool { return t.Failed() || f.submitted.Load() >= goal })
}

func (f *flow) end() int {
	close(f.stop)
	f.done.Wait()
	return int(f.submitted.Load())
}

func TestHandOver_WhileSubmitsFlowNoneFailsAndNothingRunsTwice(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		testkit.Busy(t)
		l := defineTally(&behaviors.Rules[string, string]{TaskID: idFromParams})
		a := c.StartNode("a", nil, l.run())
		client := c.StartClient("caller", nil)
		f := startFlow(t, l, a, client)
		f.await(t, 200)
		b := c.StartNode("b", nil, l.run())
		c.AwaitSpread()
		f.await(t, 200)
		b.Stop()
		f.await(t, 200)
		l.wantOnce(t, a.Client, f.end())
		wantNoEvent(t, a.Client, "Lost", "Failed", "Released")
	})
}

// wantNoEvent asserts that the finished tasks have no event of the given kinds.
func wantNoEvent(t *testing.T, c *engine.Client, kinds ...string) {
	t.Helper()
	for task, err := range c.List(within(t, soon), task.Filter{Limit: 1000}) {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		if task.Details.Seq == 3 { // Created, Started, Succeeded: there is room for nothing else
			continue
		}
		got := history(t, c, task.ID)
		for _, kind := range kinds {
			if count(got, kind) > 0 {
				t.Errorf("task %s: history %v", task.ID, got)
			}
		}
	}
}

func TestDrain_WhileSubmitsFlowNoneFailsAndNothingRunsTwice(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		testkit.Busy(t)
		l := defineTally(&behaviors.Rules[string, string]{TaskID: idFromParams})
		nodes := c.StartNodes(nil, l.on, "a", "b", "c")
		client := c.StartClient("caller", nil)
		f := startFlow(t, l, client)
		f.await(t, 100)
		for _, n := range nodes[:2] {
			n.Stop()
			f.await(t, 100)
		}
		l.wantOnce(t, client.Client, f.end())
		wantNoEvent(t, nodes[2].Client, "Lost", "Failed", "Released")
	})
}

func TestKill_WhileSubmitsFlowNoneFails(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		testkit.Busy(t)
		quick := behaviors.Define("quick", &behaviors.Rules[string, string]{TaskID: idFromParams})
		bound := quick.Bind(func(_ context.Context, p string) (string, error) { return p + " ran 1", nil })
		nodes := c.StartNodes(nil, func(string) []task.Behavior { return []task.Behavior{bound} }, "a", "b", "c")
		client := c.StartClient("caller", nil)
		f := startFlow(t, &tally{Behavior: quick}, client)
		f.await(t, 100)
		nodes[0].Kill()
		f.await(t, 100)
		total := f.end()
		finished := 0
		for task, err := range client.List(within(t, soon), task.Filter{Limit: 1000}) {
			if err != nil {
				t.Fatal(err)
			}
			if task.Final() && task.Error == nil {
				finished++
			}
		}
		if finished != min(total, 1000) {
			t.Errorf("%d tasks have succeeded, want %d", finished, total)
		}
	})
}
