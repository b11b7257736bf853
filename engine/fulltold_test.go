package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
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
// for an outcome gets it once there is room. Without NATS questions from elsewhere are writes, which the store refuses.
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
								if !early && (!errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "the store is full: compact, defragment and disarm the alarm")) {
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
						_, err := n.Submit(within(t), job, nil, engine.SubmitOptions{ID: another})
						var refusal *engine.OverloadError
						if took := time.Since(began); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "compact, defragment") || took > time.Second {
							t.Errorf("a submit from node %d: %v after %s", i, err, took)
						}
						infos, err := n.Shards(within(t))
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
				later, err := c.nodes[0].Submit(within(t), job, nil, engine.SubmitOptions{ID: "x", NotBefore: time.Now().Add(time.Hour)})
				if err != nil {
					t.Fatal(err)
				}
				infos, err := c.nodes[0].Shards(within(t))
				if err != nil {
					t.Fatal(err)
				}
				owner := infos[events.TaskID("x").Shard(modelledShards)].Owner
				c.etcd.SetFull(true)
				time.Sleep(2 * time.Second)
				for _, n := range c.nodes {
					for what, do := range map[string]func() error{
						"cancel": func() error { return n.Cancel(within(t), "x", "") },
						"pause":  func() error { return n.Pause(within(t), job.ID(), "") },
						"submit of what is there": func() error {
							_, err := n.Submit(within(t), job, nil, engine.SubmitOptions{ID: "x"})
							return err
						},
					} {
						began := time.Now()
						err := do()
						var refusal *engine.OverloadError
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
				if err := c.nodes[1].Cancel(within(t), "x", ""); err != nil {
					t.Errorf("when there is room: %v", err)
				}
				if _, err := later.Wait(within(t)); !errors.Is(err, engine.ErrCancelled) {
					t.Errorf("the outcome is %v", err)
				}
			})
		})
	}
}

// fillingStore makes etcd full when a shard is to be handed over.
type fillingStore struct {
	store.Store
	shard int // -1: any
	fill  func()
}

func (s *fillingStore) HandOver(ctx context.Context, o store.Ownership, target string) error {
	if s.shard == -1 || s.shard == o.Shard {
		s.fill()
	}
	return s.Store.HandOver(ctx, o, target)
}

// Owners that are asked for their shards by who should have them now cannot hand them over.
func TestHandOver_WhileEtcdIsFullNoOwnerFallsSilent(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprint("full before a node dies: ", early), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, true)
				var armed, filled atomic.Bool
				fill := func() {
					if armed.Load() && filled.CompareAndSwap(false, true) {
						c.etcd.SetFull(true)
					}
				}
				for _, name := range []string{"a", "b", "c", "d"} {
					c.start(name, 0, func(c *cfg) { c.Store = &fillingStore{c.Store, -1, fill} }).ready(t)
				}
				c.spread(4)
				infos, err := c.nodes[0].Shards(within(t))
				if err != nil {
					t.Fatal(err)
				}
				gone := c.nodes[3].SessionID()
				armed.Store(true)
				if early {
					fill()
					time.Sleep(2 * time.Second)
				}
				c.nodes[3].crash()
				c.nodes = c.nodes[:3]
				for began := time.Now(); !filled.Load(); time.Sleep(10 * time.Millisecond) {
					if time.Since(began) > time.Minute {
						t.Fatal("nobody hands a shard over")
					}
				}
				for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(time.Second) {
					for shard, info := range infos {
						if info.Owner == gone {
							continue
						}
						for _, n := range c.nodes {
							asked := time.Now()
							_, err := n.GetLinear(within(t), idIn(shard, modelledShards))
							told := errors.Is(err, engine.ErrNotFound) || asked.Sub(began) < 2*time.Second && err != nil && strings.Contains(err.Error(), "compact, defragment")
							if took := time.Since(asked); !told || took > time.Second {
								t.Errorf("shard %d answers %s after the first try, to %s: %v, after %s", shard, time.Since(began), n.name, err, took)
							}
						}
					}
				}
				c.etcd.SetFull(false)
				c.spread(3)
			})
		})
	}
}
