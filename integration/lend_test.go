package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

var parents = behaviors.Define[string, int]("parent", nil)

// parent binds a handler that submits children and waits for them by wait.
func parent(w *work, children int, wait func(context.Context, []*behaviors.Future[string]) error) task.Behavior {
	return parents.Bind(func(ctx context.Context, name string) (int, error) {
		client, ok := behaviors.Submitter(ctx)
		if !ok {
			return 0, errors.New("the handler finds no client")
		}
		var all []*behaviors.Future[string]
		for i := range children {
			f, err := w.Submit(ctx, client, fmt.Sprintf("%s-%d", name, i))
			if err != nil {
				return 0, err
			}
			all = append(all, f)
		}
		return children, wait(ctx, all)
	})
}

func oneByOne(ctx context.Context, all []*behaviors.Future[string]) error {
	for _, f := range all {
		if _, err := f.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func together(ctx context.Context, all []*behaviors.Future[string]) error {
	_, err := behaviors.All(all...).Wait(ctx)
	return err
}

func sideBySide(ctx context.Context, all []*behaviors.Future[string]) error {
	var waits sync.WaitGroup
	for _, f := range all {
		waits.Go(func() { f.Wait(ctx) })
	}
	waits.Wait()
	return nil
}

func TestWait_LendsTheSlotOfItsAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how  string
		wait func(context.Context, []*behaviors.Future[string]) error
	}{{"one by one", oneByOne}, {"together", together}, {"side by side", sideBySide}} {
		t.Run(c.how, func(t *testing.T) {
			withAndWithoutNATS(t, func(t *testing.T, cl *testcluster.Cluster) {
				const children = 5
				w := defineWork("child", &behaviors.Rules[string, string]{TaskID: idFromParams})
				n := cl.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Slots = 1 }, w.on("a"), parent(w, children, c.wait))
				f, err := parents.Submit(within(t, soon), n, "p")
				if err != nil {
					t.Fatal(err)
				}
				for range children {
					r := w.next(t)
					w.nothing(t) // there is one slot
					r.succeed("done")
				}
				want(t, f, children)
				if f, err = parents.Submit(within(t, soon), n, "q"); err != nil { // the slot has come back once
					t.Fatal(err)
				}
				for range children {
					w.next(t).succeed("done")
				}
				want(t, f, children)
			})
		})
	}
}

func TestWait_LendsNoPlaceWithinALimit(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("child", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Slots, cfg.Limits = 4, map[string]int{"parent": 1} }, w.on("a"), parent(w, 1, oneByOne))
		futures := submitParents(t, n, 2)
		for range futures {
			r := w.next(t)
			w.nothing(t)
			r.succeed("done")
		}
		for _, f := range futures {
			want(t, f, 1)
		}
	})
}

// Were every slot held by a task that waits for another, none would ever end.
func TestWait_LeavesSlotsToThoseThatAreWaitedFor(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("child", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Slots = 2 }, w.on("a"), parent(w, 1, oneByOne))
		futures := submitParents(t, n, 20)
		for range futures {
			w.next(t).succeed("done")
		}
		for _, f := range futures {
			want(t, f, 1)
		}
	})
}

// A task that waits may be waited for.
func TestWait_LendsTheSlotOfEachInALineThatWaits(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		line := []*behaviors.Behavior[string, string]{
			behaviors.Define[string, string]("first", nil), behaviors.Define[string, string]("second", nil), behaviors.Define[string, string]("third", nil),
		}
		last := defineWork("last", nil)
		bound := []task.Behavior{last.on("a")}
		for i, b := range line {
			next := last.Behavior
			if i+1 < len(line) {
				next = line[i+1]
			}
			bound = append(bound, b.Bind(func(ctx context.Context, name string) (string, error) {
				client, _ := behaviors.Submitter(ctx)
				f, err := next.Submit(ctx, client, name)
				if err != nil {
					return "", err
				}
				return f.Wait(ctx)
			}))
		}
		n := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Slots = 1 }, bound...)
		var futures []*behaviors.Future[string]
		for i := range 3 { // the first of all wait for the one slot, too
			f, err := line[0].Submit(within(t, soon), n, fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			futures = append(futures, f)
		}
		for range futures {
			r := last.next(t)
			r.succeed("from " + r.params)
		}
		for i, f := range futures {
			want(t, f, fmt.Sprint("from ", i))
		}
	})
}

// What it waited for ends elsewhere while another task has the lent slot: it goes on beside that, and nothing else
// starts until both have ended.
func TestWait_GoesOnAboveTheSlotsAndNothingStartsUntilThereIsOneFree(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		child, other := defineWork("child", &behaviors.Rules[string, string]{TaskID: idFromParams}), defineWork("other", nil)
		goesOn, finish := make(chan struct{}, 1), make(chan struct{})
		on := parents.Bind(func(ctx context.Context, name string) (int, error) {
			client, _ := behaviors.Submitter(ctx)
			f, err := child.Submit(ctx, client, "child-of-"+name)
			if err == nil {
				_, err = f.Wait(ctx)
			}
			if err != nil {
				return 0, err
			}
			goesOn <- struct{}{}
			select {
			case <-finish:
				return 1, nil
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		})
		a := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Slots = 1 }, on, other.on("a"))
		c.StartNode("b", nil, child.on("b"))
		f, err := parents.Submit(within(t, soon), a, "p")
		if err != nil {
			t.Fatal(err)
		}
		awaited := child.next(t)
		second := other.submit(t, a, "takes the lent slot")
		lent := other.next(t)
		third := other.submit(t, a, "finds none")
		awaited.succeed("done")
		select {
		case <-goesOn:
		case <-time.After(soon):
			t.Fatal("what it waited for has ended, and it does not go on")
		}
		other.nothing(t)
		lent.succeed("done")
		want(t, second, "done")
		other.nothing(t) // the one slot is taken again
		close(finish)
		want(t, f, 1)
		other.next(t).succeed("done")
		want(t, third, "done")
	})
}

func submitParents(t *testing.T, n *testcluster.Node, how int) (futures []*behaviors.Future[int]) {
	t.Helper()
	for i := range how {
		f, err := parents.Submit(within(t, soon), n, fmt.Sprint("p", i))
		if err != nil {
			t.Fatal(err)
		}
		futures = append(futures, f)
	}
	return futures
}

func TestSubmitter_IsNoneOutsideAnAttempt(t *testing.T) {
	if _, ok := behaviors.Submitter(t.Context()); ok {
		t.Error("a context without an attempt has a client")
	}
}
