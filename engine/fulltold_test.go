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

	"taskledger/engine"
	"taskledger/events"
)

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
		for _, err := range c.List(ctx, engine.Filter{Affinity: id.Affinity()}) {
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	return all
}

// An append that waits for room makes its shard say so at every question, the ones that came just before included, while who waits
// for an outcome gets it once there is room. Without NATS questions from elsewhere are writes.
func TestStore_FullIsToldWithinASecond(t *testing.T) {
	const shard = 3
	for _, withBus := range []bool{true, false} {
		t.Run(fmt.Sprint("NATS: ", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, withBus)
				job := newJob(engine.Policy{})
				for _, name := range []string{"a", "b"} {
					c.start(name, 0, nil, job).ready(t)
				}
				c.spread(2)
				id := idIn(shard, modelledShards)
				infos, err := c.nodes[0].Shards(within(t))
				if err != nil {
					t.Fatal(err)
				}
				var outcomes []*engine.Future
				var asking sync.WaitGroup
				f := job.submit(t, c.nodes[0].Node, id)
				run := job.next(t)
				c.etcd.SetFull(true)
				known := time.Now().Add(time.Second)
				run.succeed("1")
				for _, n := range c.nodes {
					if !withBus && n.SessionID() != infos[shard].Owner {
						continue
					}
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
								if !early && (!errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "the store is full: compact, defragment and disarm the alarm")) {
									t.Errorf("%s of %s, %s after it was known: %v", what, n.name, time.Since(known), err)
									return
								}
								time.Sleep(200 * time.Millisecond)
							}
						})
					}
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
