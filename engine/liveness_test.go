package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/modeletcd"
	"taskledger/internal/testkit"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// client is a process that is no node. It stops when the test ends.
func (c *modelled) client(change ...func(*engine.ClientConfig)) *engine.Client {
	c.Helper()
	etcd := c.etcd.ConnectInBubble(modeletcd.Direct{})
	opened, err := etcdstore.Open(c.Context(), etcdstore.Config{Client: etcd, Shards: modelledShards})
	if err != nil {
		c.Fatal(err)
	}
	config := engine.ClientConfig{Store: opened, Log: slog.New(slog.DiscardHandler)}
	if c.bus != nil {
		config.Bus = c.bus
	}
	for _, change := range change {
		change(&config)
	}
	client, err := engine.NewClient(config)
	if err != nil {
		c.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := client.Run(ctx); err != nil {
			c.Errorf("the client has ended: %v", err)
		}
	})
	c.Cleanup(func() {
		stop()
		running.Wait()
		_ = etcd.Close() // tells that its context has ended
	})
	return client
}

// calls are all that need an owner, about a task.
func calls(c *engine.Client, j *job, id events.TaskID) map[string]func(context.Context) error {
	all := questions(c, id)
	delete(all, waits)
	delete(all, "shards")
	all["explain"] = func(ctx context.Context) error {
		e, err := c.Explain(ctx, id)
		return errors.Join(err, fmt.Errorf("%w: %w: %s", store.ErrUnavailable, task.ErrNoNode, strings.TrimPrefix(e.Text, "nobody answers for shard ")))
	}
	all["list"] = func(ctx context.Context) error {
		page, err := c.ListPage(ctx, task.Filter{}, "")
		if len(page.Missing) > 0 {
			return fmt.Errorf("%d shards are missing: %w", len(page.Missing), err)
		}
		return err
	}
	all["counts"] = func(ctx context.Context) error {
		_, err := c.Counts(ctx, "")
		return err
	}
	all["submit by name"] = func(ctx context.Context) error {
		_, err := c.SubmitRaw(ctx, "job", nil, task.SubmitOptions{ID: id})
		return err
	}
	all["submit many"] = func(ctx context.Context) error {
		return c.SubmitMany(ctx, requests(j, 1, task.SubmitOptions{ID: id}), task.ManyOptions{})[0].Err
	}
	all["update items"] = func(ctx context.Context) error {
		_, err := c.Stores().Update(ctx, "s", &item.Update{Client: 1, Adds: []item.Add{{Group: "g", Data: []byte("1")}}})
		return err
	}
	all["pause"] = func(ctx context.Context) error { return c.Operations().Pause(ctx, "job", "") }
	return all
}

// withAndWithoutBus runs a test in a bubble, twice.
func withAndWithoutBus(t *testing.T, test func(t *testing.T, c *modelled)) {
	for _, bus := range []bool{true, false} {
		t.Run(fmt.Sprint("NATS: ", bus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newModelled(t, bus)) })
		})
	}
}

// hasty is within of a caller who does not wait for nodes.
func hasty(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}

// Nothing is left in a mailbox, for whichever node comes hours later.
func TestClient_IsToldWithinThreeSecondsThatNoNodeIsAliveAndNothingWasAccepted(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	withAndWithoutBus(t, func(t *testing.T, c *modelled) {
		j, client := newJob(task.Policy{}), c.client()
		for round := range 2 { // at once, and when it has been idle
			var asking sync.WaitGroup
			for what, call := range calls(client, j, "t") {
				asking.Go(func() {
					began := time.Now()
					err := call(hasty(t))
					if took := time.Since(began); took < 2*time.Second || took > 3*time.Second {
						t.Errorf("round %d, %s: ended after %s, want 2 to 3 s", round, what, took)
					}
					if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, task.ErrNoNode) || errors.Is(err, task.ErrUnknown) {
						t.Errorf("round %d, %s: %v, want that no node is alive", round, what, err)
					}
				})
			}
			asking.Wait()
			hurried, cancel := context.WithTimeout(t.Context(), time.Second)
			if page, err := client.ListPage(hurried, task.Filter{}, ""); !errors.Is(err, task.ErrNoNode) || len(page.Missing) > 0 {
				t.Errorf("round %d: a list within a second: %v, %d shards missing", round, err, len(page.Missing))
			}
			cancel()
			time.Sleep(time.Hour)
		}
		c.start("a", 0, nil, j).ready(t)
		j.nothing(t)
		if _, err := client.Get(within(t), "t"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("the task that was refused: %v, want none", err)
		}
		j.submit(t, client, "t")
		j.next(t).succeed("1")
	})
}

func TestAwaitNodes_WaitsForANodeAsLongAsTheContextLasts(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	withAndWithoutBus(t, func(t *testing.T, c *modelled) {
		j, client := newJob(task.Policy{}), c.client()
		ctx, cancel := context.WithTimeout(task.AwaitNodes(t.Context()), time.Hour)
		defer cancel()
		ended := make(chan error, 3)
		go func() {
			_, err := client.Submit(ctx, j, nil, task.SubmitOptions{ID: "t"})
			ended <- err
		}()
		go func() {
			_, err := client.SubmitRaw(ctx, "job", nil, task.SubmitOptions{ID: "by-name"})
			ended <- err
		}()
		go func() {
			ended <- client.SubmitMany(ctx, requests(j, 1, task.SubmitOptions{}), task.ManyOptions{})[0].Err
		}()
		time.Sleep(10 * time.Minute)
		c.start("a", 0, nil, j).ready(t)
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Errorf("who waits for a node: %v", err)
			}
			j.next(t).succeed("1")
		}
	})
}

// The node has died, and its session not yet: what is sent to it may be carried out by the next one.
func TestClient_IsToldThatTheOutcomeIsUnknownOfWhatHadLeftForANodeThatIsGone(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	withAndWithoutBus(t, func(t *testing.T, c *modelled) {
		j, client := newJob(task.Policy{}), c.client()
		a := c.start("a", 0, nil, j)
		a.ready(t)
		future := j.submit(t, client, "before")
		run := j.next(t)
		waiting := make(chan error, 1)
		go func() {
			_, err := future.Wait(t.Context())
			waiting <- err
		}()
		a.crash()
		began := time.Now()
		_, err := client.Submit(hasty(t), j, nil, task.SubmitOptions{ID: "t"})
		if !errors.Is(err, task.ErrUnknown) || !errors.Is(err, task.ErrNoNode) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a submit that had left: %v, want that its outcome is unknown, and why", err)
		}
		if took := time.Since(began); took > modelledTTL+5*time.Second {
			t.Errorf("it ended after %s", took)
		}
		if _, err := client.Submit(hasty(t), j, nil, task.SubmitOptions{ID: "t"}); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, task.ErrUnknown) {
			t.Errorf("a submit behind it: %v, want that it was not accepted", err)
		}
		time.Sleep(10 * time.Minute)
		select {
		case err := <-waiting:
			t.Fatalf("who waits for a task that was accepted: %v", err)
		default:
		}
		run.succeed("0") // to nobody
		c.start("b", 0, nil, j).ready(t)
		j.next(t).succeed("1")
		j.next(t).succeed("1")
		if err := <-waiting; err != nil {
			t.Errorf("who waited for a task that was accepted: %v", err)
		}
		if f, err := client.Submit(within(t), j, nil, task.SubmitOptions{ID: "t"}); err != nil || !f.Joined() {
			t.Errorf("the submit again: joined %t, %v", f.Joined(), err)
		}
	})
}

// looks counts how often the membership is read.
type looks struct {
	store.Store
	made atomic.Int64
}

func (s *looks) ReadMembers(ctx context.Context) (store.Membership, error) {
	s.made.Add(1)
	return s.Store.ReadMembers(ctx)
}

func (s *looks) count(config *engine.ClientConfig) { s.Store, config.Store = config.Store, s }

// A future may be open for days, and thousands of clients may have one.
func TestClient_LooksForNodesOnceASecondWhileOnlyThoseWaitWhoWaitForAny(t *testing.T) {
	t.Parallel()
	withAndWithoutBus(t, func(t *testing.T, c *modelled) {
		seen, unused := &looks{}, &looks{}
		j, client, idle := newJob(task.Policy{}), c.client(seen.count), c.client(unused.count)
		a := c.start("a", 0, nil, j)
		a.ready(t)
		future := j.submit(t, client, "before")
		run := j.next(t)
		ctx, stop := context.WithCancel(task.AwaitNodes(t.Context()))
		defer stop()
		var waiting sync.WaitGroup
		defer waiting.Wait()
		waiting.Go(func() { _, _ = future.Wait(t.Context()) })
		if _, err := idle.Get(within(t), "before"); err != nil {
			t.Error(err)
		}
		a.crash()
		if _, err := idle.Submit(hasty(t), j, nil, task.SubmitOptions{ID: "left"}); !errors.Is(err, task.ErrUnknown) {
			t.Errorf("a submit that had left: %v, want that its outcome is unknown", err)
		}
		looked := func(who string, most int64) {
			before, idle := seen.made.Load(), unused.made.Load()
			time.Sleep(time.Minute)
			if made := seen.made.Load() - before; made > most {
				t.Errorf("%s: %d looks in a minute, want %d at most", who, made, most)
			}
			if made := unused.made.Load() - idle; made > 2 {
				t.Errorf("nobody waits: %d looks in a minute, want none", made)
			}
		}
		looked("a future waits", 66)
		waiting.Go(func() { _, _ = client.Submit(ctx, j, nil, task.SubmitOptions{ID: "later"}) })
		looked("a submit waits for nodes, too", 66)
		run.succeed("0") // to nobody
		c.start("b", 0, nil, j).ready(t)
		for range 3 {
			j.next(t).succeed("1")
		}
	})
}

// A process that is to enqueue whether workers are there or not is a node itself.
func TestNode_WithoutSlotsTakesTasksThatOthersMakeLater(t *testing.T) {
	t.Parallel()
	withAndWithoutBus(t, func(t *testing.T, c *modelled) {
		j := newJob(task.Policy{})
		front := c.start("front", 0, func(config *cfg) { config.Slots = -1 }, j)
		front.ready(t)
		future := j.submit(t, front.Node, "t")
		if _, err := front.SubmitRaw(within(t), "job", nil, task.SubmitOptions{ID: "by-name"}); err != nil {
			t.Errorf("a submit by name: %v", err)
		}
		j.nothing(t)
		c.start("worker", 0, noShards, j).ready(t)
		j.next(t).succeed("1")
		j.next(t).succeed("1")
		want(t, future, "1")
	})
}
