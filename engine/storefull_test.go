package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// etcd is filled up under a node. Its session lives on, the outcome of what ran is kept until there is space, and
// new tasks are refused with the remedy.
func TestStore_FullLosesNothing(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	c := testcluster.New(t, testcluster.Options{Shards: 1, Quota: 16 << 20, TTL: ttl})
	j := newJob(task.Policy{})
	n := c.StartNode("a", nil, j)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	r := j.next(t)
	session := n.SessionID()
	fillStore(t, c)
	r.succeed("1")
	awaitDegraded(t, client.Client, "defragment and disarm the alarm")
	testcluster.Await(t, "refusal with the remedy", func() bool {
		one, cancel := context.WithTimeout(t.Context(), 2*ttl) // one decided with the outcome has no answer
		defer cancel()
		_, err := client.Submit(one, j, nil, task.SubmitOptions{ID: "refused"})
		var overload *task.OverloadError
		return errors.As(err, &overload) && strings.Contains(overload.Cause, "defragment and disarm the alarm")
	})
	for what, question := range reads(client.Client, "x") {
		if err := question(within(t)); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "defragment and disarm the alarm") {
			t.Errorf("%s: %v", what, err)
		}
	}
	stuck, cancel := context.WithTimeout(t.Context(), 5*ttl/2)
	defer cancel()
	if got, err := f.Wait(stuck); stuck.Err() == nil {
		t.Fatalf("got %s, %v from a full store", got, err)
	}
	emptyStore(t, c)
	want(t, f, "1")
	testcluster.Await(t, "new tasks accepted", func() bool {
		_, err := client.Submit(within(t), j, nil, task.SubmitOptions{ID: "refused"})
		return err == nil
	})
	j.next(t).succeed("2")
	wantHistory(t, n.Client, "x", "Created Started Succeeded")
	if now := n.SessionID(); now != session {
		t.Errorf("session %s after %s: it has ended", now, session)
	}
}

// A sender has one batch under way: one that waits for room must not make its caller's later tasks wait in silence.
func TestStore_FullRefusesWhatFollowsATaskThatWaitsForRoom(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1, Quota: 16 << 20})
	g := &gauge{}
	g.show(0) // no look at the store refuses anything
	j := newJob(task.Policy{})
	c.StartNode("a", g.under, j)
	client := c.StartClient("caller", nil)
	first := j.submit(t, client, "x")
	j.next(t).succeed("1")
	want(t, first, "1")
	fillStore(t, c)
	gone, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if f, err := client.Submit(gone, j, nil, task.SubmitOptions{ID: "waits"}); !errors.Is(err, task.ErrUnknown) {
		t.Errorf("what is in the entry: got %v, %v", f, err)
	}
	for i := range 3 {
		wantOverload(t, client, j, "defragment and disarm the alarm")
		if t.Failed() {
			t.Fatalf("submit %d behind it", i)
		}
	}
	emptyStore(t, c)
	j.next(t).succeed("2")
	want(t, client.Attach("waits"), "2")
}

// fillStore writes until the alarm is raised.
func fillStore(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	text := strings.Repeat("x", 1<<20)
	for range 100 {
		_, err := c.Etcd.Put(within(t), "filler", text)
		if errors.Is(err, rpctypes.ErrNoSpace) || errors.Is(err, rpctypes.ErrGRPCNoSpace) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("etcd is not full")
}

// emptyStore does what the message asks for.
func emptyStore(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	over, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Endpoint}, Context: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	gone, err := over.Delete(within(t), "filler")
	if err == nil {
		_, err = over.Compact(within(t), gone.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		_, err = over.Defragment(within(t), c.Endpoint)
	}
	if err == nil {
		_, err = over.AlarmDisarm(within(t), &clientv3.AlarmMember{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reads are the questions that have no answer while an append waits for room.
func reads(c *engine.Client, id events.TaskID) map[string]func(context.Context) error {
	all := questions(c, id)
	for _, other := range []string{waits, submits, cancels, "shards"} {
		delete(all, other)
	}
	all["explain"] = func(ctx context.Context) error {
		_, err := c.Explain(ctx, id)
		return err
	}
	all["list"] = func(ctx context.Context) error {
		var errs []error
		for _, err := range c.List(ctx, task.Filter{Affinity: id.Affinity()}) {
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	return all
}

// An append that waits for room makes its shard say so at every question, the ones that came just before included,
// while whoever waits for an outcome gets it once there is room. Without NATS questions from elsewhere are writes,
// which the store refuses.
func TestStore_FullIsToldWithinASecond(t *testing.T) {
	t.Parallel()
	const shard = 3
	for _, withBus := range []bool{true, false} {
		t.Run(fmt.Sprint("NATS: ", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, job := newPair(t, withBus)
				id := idIn(shard, modelledShards)
				var outcomes []*engine.Future
				var asking sync.WaitGroup
				f := job.submit(t, c.nodes[0].Node, id)
				run := job.next(t)
				c.etcd.SetFull(true)
				known := time.Now().Add(time.Second)
				run.succeed("1")
				for _, n := range c.nodes {
					outcomes = append(outcomes, n.Attach(id))
					for what, question := range reads(n.Client, id) {
						asking.Go(func() {
							for i := range 50 {
								began := time.Now()
								if began.Before(known) {
									began = known
								}
								err := question(within(t))
								if took := time.Since(began); took > time.Second {
									t.Errorf("%s of %s took %s: %v", what, n.name, took, err)
								}
								early := i == 0 && err == nil // before the outcome came
								if !early && (!errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the store is full: compact, defragment and disarm the alarm")) {
									t.Errorf("%s of %s, %s after it was known: %v", what, n.name, time.Since(known), err)
									return
								}
								time.Sleep(200 * time.Millisecond)
							}
						})
					}
				}
				for i, n := range c.nodes {
					another := id + "/another"
					asking.Go(func() {
						time.Sleep(time.Until(known))
						began := time.Now()
						_, err := n.Submit(within(t), job, nil, task.SubmitOptions{ID: another})
						var refusal *task.OverloadError
						if took := time.Since(began); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "compact, defragment") || took > time.Second {
							t.Errorf("a submit from node %d: %v after %s", i, err, took)
						}
						infos, err := n.Operations().Shards(within(t))
						if err != nil || !strings.Contains(infos[shard].Problem+infos[shard].Degraded, "compact, defragment") {
							t.Errorf("node %d was told of the shard %+v, %v", i, infos[shard], err)
						}
					})
				}
				for _, f := range append(outcomes, f) {
					asking.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
						defer cancel()
						if got, err := f.Wait(ctx); ctx.Err() == nil {
							t.Errorf("a wait ended with %s, %v", got, err)
						}
					})
				}
				asking.Wait()
				c.etcd.SetFull(false)
				for _, f := range append(outcomes, f) {
					want(t, f, "1")
				}
			})
		})
	}
}

// Operators are told, too, instead of waiting for room behind the entry that would record what they want.
func TestStore_FullRefusesOperatorsWhereNothingWaits(t *testing.T) {
	t.Parallel()
	for _, withBus := range []bool{true, false} {
		t.Run(fmt.Sprint("NATS: ", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, job := newPair(t, withBus)
				later, err := c.nodes[0].Submit(within(t), job, nil, task.SubmitOptions{ID: "x", NotBefore: time.Now().Add(time.Hour)})
				if err != nil {
					t.Fatal(err)
				}
				infos, err := c.nodes[0].Operations().Shards(within(t))
				if err != nil {
					t.Fatal(err)
				}
				owner := infos[events.TaskID("x").Shard(modelledShards)].Owner
				c.etcd.SetFull(true)
				time.Sleep(2 * time.Second)
				for _, n := range c.nodes {
					for what, do := range map[string]func() error{
						"cancel": func() error { return n.Operations().Cancel(within(t), "x", "") },
						"pause":  func() error { return n.Operations().Pause(within(t), job.ID(), "") },
						"submit of what is there": func() error {
							_, err := n.Submit(within(t), job, nil, task.SubmitOptions{ID: "x"})
							return err
						},
					} {
						began := time.Now()
						err := do()
						var refusal *task.OverloadError
						if took := time.Since(began); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "compact, defragment") || took > time.Second {
							t.Errorf("%s by %s: %v after %s", what, n.name, err, took)
						}
						if n.SessionID() == owner {
							if _, err := n.GetLinear(within(t), "x"); err != nil {
								t.Errorf("a question after %s: %v", what, err)
							}
						}
					}
				}
				c.etcd.SetFull(false)
				time.Sleep(2 * time.Second)
				if err := c.nodes[1].Operations().Cancel(within(t), "x", ""); err != nil {
					t.Errorf("when there is room: %v", err)
				}
				if _, err := later.Wait(within(t)); !errors.Is(err, task.ErrCancelled) {
					t.Errorf("the outcome is %v", err)
				}
			})
		})
	}
}
