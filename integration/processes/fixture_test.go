package processes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// soon bounds what should come at once, on a slow and busy machine.
const soon = 5 * time.Minute

// within returns a context that ends after d or with the test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// ok fails the test when something was refused.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// history returns the kinds of a task's events in order.
func history(t *testing.T, c *engine.Client, id events.TaskID) (kinds []string) {
	t.Helper()
	for ev, err := range c.Ledger().History(within(t, soon), id) {
		if err != nil {
			t.Fatalf("history of %s: %v", id, err)
		}
		kinds = append(kinds, ev.Kind().String())
	}
	return kinds
}

// awaitShards polls until every shard is as wanted.
func awaitShards(t *testing.T, at *engine.Client, what string, holds func(engine.ShardInfo) bool) []engine.ShardInfo {
	t.Helper()
	var last []engine.ShardInfo
	var err error
	defer func() {
		if t.Failed() {
			t.Logf("%s: %+v, %v", what, last, err)
		}
	}()
	testcluster.Await(t, what, func() bool {
		last, err = at.Operations().Shards(within(t, soon))
		return err == nil && !slices.ContainsFunc(last, func(s engine.ShardInfo) bool { return !holds(s) }) || t.Failed()
	})
	return last
}

// flow submits tasks of the behavior echo from several goroutines, and waits for each, until it is stopped.
type flow struct {
	submitted atomic.Int64
	stop      chan struct{}
	done      sync.WaitGroup
}

// load describes a flow.
type load struct {
	atOnce int                      // goroutines
	pause  time.Duration            // of each, between two tasks
	params func(name string) string // of a task
	again  bool                     // what nobody answers is submitted again: no node may live for long
}

// startFlow begins a flow of deterministic ids through the members, by turns.
func startFlow(t *testing.T, of load, members ...behaviors.Client) *flow {
	f, b := &flow{stop: make(chan struct{})}, echo()
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
				ctx := within(t, soon)
				future, err := b.Submit(ctx, members[(i+n)%len(members)], p)
				for of.again && ctx.Err() == nil && (errors.Is(err, task.ErrUnknown) || errors.Is(err, store.ErrUnavailable)) {
					future, err = b.Submit(ctx, members[(i+n)%len(members)], p)
				}
				if err != nil {
					t.Errorf("submit %s: %v", name, err)
					return
				}
				f.submitted.Add(1)
				if got, err := future.Wait(within(t, soon)); err != nil || got != p+" ran 1" {
					t.Errorf("task %s: got %.100s, %v; want %.100s", name, got, err, p+" ran 1")
				}
			}
		})
	}
	return f
}

func (f *flow) end() int {
	close(f.stop)
	f.done.Wait()
	return int(f.submitted.Load())
}
