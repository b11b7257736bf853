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

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/item"
	"taskledger/ledger"
	"taskledger/store"
)

const (
	storeName    = "crawl"
	storeGroup   = "pages"
	storeWorkers = 32
	storeBegins  = 64 // items
	// betweenKills is the number of cycles that the workers make between two kills. They have at least
	// betweenKillsLeast for them, so that the owner that was started last has joined.
	betweenKills      = 100
	betweenKillsLeast = 2 * time.Second
)

// storeWork records the work of the workers of a store, and the answers that they got.
type storeWork struct {
	t       *testing.T
	mu      sync.Mutex
	added   map[int64]bool // ids that were acknowledged as added
	removed map[int64]bool // ids whose removal was acknowledged
	cycles  atomic.Int64
	late    atomic.Int64
}

// add puts the first items there.
func (w *storeWork) add(c *engine.Client) {
	w.t.Helper()
	u := &item.Update{Client: 1 << 40, Key: "begin"}
	for i := range storeBegins {
		u.Adds = append(u.Adds, item.Add{Group: storeGroup, Data: fmt.Append(nil, "first ", i)})
	}
	var got []item.Item
	ok(w.t, testcluster.UntilAnswered(within(w.t, soon), func(ctx context.Context) (err error) {
		got, err = c.Stores().Update(ctx, storeName, u)
		return err
	}))
	for _, i := range got {
		w.added[i.ID] = true
	}
}

// cycle claims an item, and removes it together with the item that it adds.
func (w *storeWork) cycle(ctx context.Context, c *engine.Client, client int64, n int) error {
	key := fmt.Sprint(client, "-", n)
	var got *item.Item
	err := testcluster.UntilAnswered(ctx, func(ctx context.Context) (err error) {
		got, err = c.Stores().Claim(ctx, storeName, &item.Claim{Client: client, Key: "claim-" + key, Group: storeGroup,
			Duration: 3 * time.Second, Wait: time.Second})
		return err
	})
	conflict := (*item.ConflictError)(nil)
	if errors.As(err, &conflict) {
		w.late.Add(1) // the answer was lost, and the claim has ended since
		return nil
	} else if err != nil || got == nil {
		return err
	}
	var made []item.Item
	err = testcluster.UntilAnswered(ctx, func(ctx context.Context) (err error) {
		made, err = c.Stores().Update(ctx, storeName, &item.Update{
			Client:  client,
			Key:     "update-" + key,
			Deletes: []int64{got.ID},
			Adds:    []item.Add{{Group: storeGroup, Data: []byte(key)}},
		})
		return err
	})
	if errors.As(err, &conflict) {
		w.late.Add(1) // its claim had ended, and another one has the item
		return nil
	} else if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.removed[got.ID]:
		w.t.Errorf("item %d was removed twice", got.ID)
	case len(made) != 1 || made[0].ID <= got.ID || w.added[made[0].ID]:
		w.t.Errorf("the update that removed %d has made %+v", got.ID, made)
	}
	w.removed[got.ID] = true
	w.added[made[0].ID] = true
	w.cycles.Add(1)
	return nil
}

// run lets all workers work until stop is closed, and waits for what they have begun.
func (w *storeWork) run(stop <-chan struct{}, clients ...*engine.Client) (ended func()) {
	var all sync.WaitGroup
	for i := range storeWorkers {
		all.Go(func() {
			ctx := w.t.Context()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := w.cycle(ctx, clients[i%len(clients)], int64(i+1), n); err != nil {
					w.t.Errorf("worker %d: %v", i, err)
					return
				}
			}
		})
	}
	return all.Wait
}

// wantAllAccounted asserts that the items there are those that were added and not removed, by what callers were told
// and by what the journal says, and that no id was used twice.
func (w *storeWork) wantAllAccounted(c *engine.Client) {
	t := w.t
	t.Helper()
	var live []item.Item
	for page := (item.Page{Group: storeGroup, Owned: true, Linear: true}); ; {
		got, more, err := c.Stores().Group(within(t, soon), storeName, page)
		ok(t, err)
		live = append(live, got...)
		if !more {
			break
		}
		page.After = got[len(got)-1].ID
	}
	var added, removed int
	ids := map[int64]string{}
	once := func(id int64, what string) {
		if before, used := ids[id]; used {
			t.Errorf("id %d was used twice: %s, %s", id, before, what)
		}
		ids[id] = what
	}
	for ev, err := range c.Ledger().Replay(within(t, soon), ledger.ReplayOptions{}) {
		ok(t, err)
		switch b := ev.Body.(type) {
		case *events.ItemAdded:
			added++
			once(int64(b.ID), ev.Position.String())
		case *events.ItemReplaced:
			once(int64(b.To), ev.Position.String())
		case *events.ItemRemoved:
			removed++
		}
	}
	for id := range len(ids) {
		if _, used := ids[int64(id+1)]; !used {
			t.Errorf("id %d was left out", id+1)
		}
	}
	if len(live) != storeBegins || added-removed != len(live) {
		t.Errorf("%d items are there, %d were added and %d removed; want %d", len(live), added, removed, storeBegins)
	}
	if len(w.added) != added || len(w.removed) != removed {
		t.Errorf("callers were told of %d added and %d removed, the journal has %d and %d",
			len(w.added), len(w.removed), added, removed)
	}
	if !slices.IsSortedFunc(live, func(a, b item.Item) int { return int(a.ID - b.ID) }) {
		t.Error("the group is not listed by id")
	}
}

// storeNodes are two nodes as processes, of which the owner of the store is killed again and again.
type storeNodes struct {
	*testcluster.Cluster
	t     *testing.T
	nodes map[string]*process
}

func (s *storeNodes) start(name string) {
	r := role{Name: name, Etcd: s.Endpoint, Shards: 1, Slots: 64, TTL: processTTL}
	if s.NATS != nil {
		r.NATS = s.NATS.URL
	}
	s.nodes[name], _ = startProcess(s.t, r)
}

// killOwner kills the owner of the shard with -9, and starts it again at once.
func (s *storeNodes) killOwner(c *engine.Client) {
	s.t.Helper()
	shards := testcluster.AwaitShards(s.t, c, "an owner", func(i engine.ShardInfo) bool {
		return i.Owner != "" && i.Problem == ""
	})
	name := store.NodeName(shards[0].Owner)
	s.nodes[name].kill()
	s.start(name)
}

// Again and again the owner is killed with -9 while workers claim items and replace them, beside ordinary tasks of
// the same shard; for a third of the time NATS is away. Nothing is lost, nothing is removed twice, and who is late is
// told so.
func TestStore_KilledOwnersLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	for name, noNATS := range map[string]bool{"nats": false, "no-nats": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.Busy(t)
			s := &storeNodes{testcluster.New(t, testcluster.Options{Shards: 1, NoNATS: noNATS}), t, map[string]*process{}}
			s.start("a")
			s.start("b")
			one, other := s.StartClient("one", nil), s.StartClient("other", nil)
			w := &storeWork{t: t, added: map[int64]bool{}, removed: map[int64]bool{}}
			w.add(one.Client)
			tasks := startFlow(t, load{
				atOnce: 2,
				pause:  20 * time.Millisecond,
				params: func(name string) string { return name },
			}, one, other)
			stop := make(chan struct{})
			ended := w.run(stop, one.Client, other.Client)
			began, away := time.Now(), false
			kills := testkit.Times(3, 24)
			for n := range kills {
				if third := n * 3 / kills; s.NATS != nil && (third == 1) != away {
					if away = !away; away {
						s.NATS.Stop()
					} else {
						s.NATS.Start()
					}
				}
				goal := w.cycles.Load() + betweenKills
				time.Sleep(betweenKillsLeast)
				testcluster.Await(t, "cycles since the last kill", func() bool { return t.Failed() || w.cycles.Load() >= goal })
				s.killOwner(one.Client)
			}
			goal := w.cycles.Load() + betweenKills
			testcluster.Await(t, "cycles after the last kill", func() bool { return t.Failed() || w.cycles.Load() >= goal })
			close(stop)
			ended()
			if away {
				s.NATS.Start()
			}
			ran := tasks.end()
			w.wantAllAccounted(one.Client)
			t.Logf("%d cycles, %d late, %d tasks beside them, %d kills in %s",
				w.cycles.Load(), w.late.Load(), ran, kills, time.Since(began).Round(time.Second))
			for _, p := range s.nodes {
				p.stop()
			}
		})
	}
}
