package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/task"
)

// questions returns all calls for a task, by name. Their errors report the state of its shard.
func questions(c *engine.Client, id events.TaskID) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"get": func(ctx context.Context) error {
			_, err := c.Get(ctx, id)
			return err
		},
		"linear get": func(ctx context.Context) error {
			_, err := c.GetLinear(ctx, id)
			return err
		},
		waits: func(ctx context.Context) error {
			waiting := c.Attach(id)
			defer waiting.Close()
			_, err := waiting.Wait(ctx)
			return err
		},
		submits: func(ctx context.Context) error {
			_, err := c.Submit(ctx, newJob(task.Policy{}), nil, task.SubmitOptions{ID: id})
			return err
		},
		cancels: func(ctx context.Context) error { return c.Operations().Cancel(ctx, id, "") },
		"explain": func(ctx context.Context) error {
			e, err := c.Explain(ctx, id)
			if err == nil && (e.Why != task.WhyQuarantined || e.Since == 0) {
				return fmt.Errorf("explained as %+v", e) // which is no ErrUnavailable, and so fails
			}
			return errors.Join(err, fmt.Errorf("%w: %s", store.ErrUnavailable, e.Text))
		},
		"shards": func(ctx context.Context) error {
			infos, err := c.Operations().Shards(ctx)
			if err != nil {
				return err
			}
			return fmt.Errorf("%w: %s", store.ErrUnavailable, infos[id.Shard(len(infos))].Problem)
		},
	}
}

// The first two may leave their sender in doubt.
const submits, cancels, waits = "submit", "cancel", "wait"

// tellsUnserved reports whether the error says that a shard cannot be served, and why.
func tellsUnserved(what string, err error, why string) bool {
	is := func(kind error) bool { return errors.Is(err, kind) }
	kind := is(store.ErrUnavailable) || (what == submits || what == cancels) && is(task.ErrUnknown)
	return kind && !is(context.DeadlineExceeded) && strings.Contains(err.Error(), "quarantined: ") && strings.Contains(err.Error(), why)
}

// wantUnserved asserts that whoever asks or wants anything of a task is told that its shard cannot be served, and why.
func wantUnserved(t *testing.T, c *engine.Client, id events.TaskID, why string) {
	t.Helper()
	for what, question := range questions(c, id) {
		if err := question(within(t)); !tellsUnserved(what, err, why) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// asked is a question that was answered.
type asked struct {
	what, of     string
	began, ended time.Time
	err          error
}

// askOnAndOn asks all questions of a task, of nodes side by side, again and again, until a channel is closed.
func askOnAndOn(t *testing.T, nodes []*modelledNode, id events.TaskID, until <-chan struct{}) (answers func() []asked) {
	var asking sync.WaitGroup
	var mu sync.Mutex
	var all []asked
	for _, n := range nodes {
		for what, question := range questions(n.Client, id) {
			asking.Go(func() {
				for {
					a := asked{what: what, of: n.name, began: time.Now()}
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a wait for what runs is asked again
					a.err = question(ctx)
					cancel()
					a.ended = time.Now()
					mu.Lock()
					all = append(all, a)
					mu.Unlock()
					select {
					case <-until:
						return
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
		}
	}
	return func() []asked {
		asking.Wait()
		return all
	}
}

// wantToldAtOnce asks all questions of a task, which may be running, from now on until some seconds after the owner
// of its shard has met damage. It asserts that from then on everybody is told within a second that the shard cannot
// be served, and why.
func wantToldAtOnce(t *testing.T, nodes []*modelledNode, id events.TaskID, running bool, why string) {
	t.Helper()
	enough := make(chan struct{})
	answers := askOnAndOn(t, nodes, id, enough)
	var met time.Time
	if running {
		met = time.Now() // a cancel is among the questions
	}
	for began := time.Now(); met.IsZero() && time.Since(began) < time.Minute; time.Sleep(100 * time.Millisecond) {
		for _, n := range nodes {
			if at := n.broke.Load(); at != nil && (met.IsZero() || at.Before(met)) {
				met = *at
			}
		}
	}
	if met.IsZero() {
		t.Error("no owner has met the damage")
	}
	time.Sleep(5 * time.Second)
	close(enough)
	later := map[string]int{}
	for _, a := range answers() {
		since := a.began
		switch {
		case a.began.After(met):
			later[a.what+a.of]++
			if !tellsUnserved(a.what, a.err, why) {
				t.Errorf("%s of %s, asked %s after the damage was met: %v", a.what, a.of, a.began.Sub(met), a.err)
			}
		case a.what == waits && running:
			continue // it was told so, and goes on
		default:
			since = met
		}
		if took := a.ended.Sub(since); took > time.Second {
			t.Errorf("%s of %s, asked %s after the damage was met, took %s from then on: %v", a.what, a.of, a.began.Sub(met), took, a.err)
		}
	}
	if asks := len(nodes) * len(questions(nodes[0].Client, id)); len(later) < asks {
		t.Errorf("%d of %d questions were asked after the damage was met: %v", len(later), asks, later)
	}
}

// A shard that cannot be served says so at every question: in its owner's process and in another one, with NATS and
// without. The damage is there when the shard is taken.
func TestShard_ThatCannotBeServedSaysSoWithinASecond(t *testing.T) {
	t.Parallel()
	const shard = 3
	const first, third = "taskledger/journal/3/0000000000000001", "taskledger/journal/3/0000000000000003"
	for _, row := range []struct{ what, write, remove, remedy string }{
		{"an entry is damaged", first, "", "remedy: restore entry 1 from a backup of etcd;"},
		{"what is stored behind the last entry is none", third, "", "remedy: taskledger repair --yes removes it, since it is no entry;"},
		{"what the archive alone holds cannot be read", "", first, "remedy: bring the archive, NATS with JetStream, back;"},
	} {
		for _, withBus := range []bool{true, false} {
			t.Run(fmt.Sprint(row.what, ", NATS: ", withBus), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newModelled(t, withBus)
					job := newJob(task.Policy{})
					a := c.start("a", 0, nil, job)
					a.ready(t)
					id := idIn(shard, modelledShards)
					f := job.submit(t, a.Node, id)
					synctest.Wait() // an entry for the start, another for the end
					job.next(t).succeed("1")
					want(t, f, "1")
					a.crash()
					if row.write != "" {
						c.write(row.write, "garbage")
					} else {
						c.write(row.remove, "")
					}
					archive := newShelf()
					archive.away.Store(true)
					for _, name := range []string{"b", "c"} {
						c.start(name, 0, func(c *cfg) { c.Archive = archive }, job)
					}
					wantToldAtOnce(t, c.nodes[1:], id, false, row.remedy)
				})
			})
		}
	}
}

// Somebody else writes where the next entry of a shard belongs while that is served.
func TestShard_ThatCannotBeServedAnyMoreSaysSoWithinASecond(t *testing.T) {
	t.Parallel()
	const shard = 3
	for _, withBus := range []bool{true, false} {
		t.Run(fmt.Sprint("NATS: ", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, job := newPair(t, withBus)
				id := idIn(shard, modelledShards)
				job.submit(t, c.nodes[0].Node, id)
				job.next(t)
				infos, err := c.nodes[0].Operations().Shards(within(t))
				if err != nil {
					t.Fatal(err)
				}
				c.write(fmt.Sprintf("taskledger/journal/%d/%016x", shard, infos[shard].Entries+1), "garbage")
				wantToldAtOnce(t, c.nodes, id, true, "remedy: taskledger repair --yes removes it, since it is no entry;")
			})
		})
	}
}

// A key behind the last entry that is not the next entry's is named by the remedy. Once it is removed the shard is
// served within seconds.
func TestShard_IsServedSoonAfterWhatLiesFurtherBehindIsRemoved(t *testing.T) {
	const shard = 3
	for _, row := range []struct {
		key  string
		used bool // the shard holds entries
	}{{"taskledger/journal/3/0000000000000005", true}, {"taskledger/journal/3/stray", false}} {
		t.Run(row.key, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, job := newModelled(t, true), newJob(task.Policy{})
				a := c.start("a", 0, nil, job)
				a.ready(t)
				id := idIn(shard, modelledShards)
				if row.used {
					job.submit(t, a.Node, id)
					job.next(t)
				}
				a.crash()
				c.write(row.key, "garbage")
				b := c.start("b", 0, nil, job)
				c.nodes = c.nodes[1:]
				for began := time.Now(); b.broke.Load() == nil; time.Sleep(10 * time.Millisecond) {
					if time.Since(began) > time.Minute {
						t.Fatal("no owner has met the damage")
					}
				}
				time.Sleep(10 * time.Second)
				wantUnserved(t, b.Client, id, "remedy: taskledger repair --yes removes "+row.key+", since it is no entry;")
				c.write(row.key, "")
				removed := time.Now()
				for {
					if _, err := b.GetLinear(within(t), id); !errors.Is(err, store.ErrUnavailable) {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(removed); took > 3*time.Second {
					t.Errorf("the shard is served again after %s", took)
				}
			})
		})
	}
}

// past is a cluster on etcd with a past, whose journals a test damages.
type past struct {
	*testcluster.Journals
	node *engine.Node
	job  *job
}

const pastShards = 2

// newPast runs six tasks in turns of the shards, which make entries of their own.
func newPast(t *testing.T) *past {
	t.Helper()
	p := &past{Journals: testcluster.StartJournals(t, pastShards), job: newJob(task.Policy{})}
	p.node = runNode(t, engine.NodeConfig{Store: p.Store, Name: "n", TTL: 3 * time.Second, Behaviors: []task.Behavior{p.job}})
	for i := range 6 {
		f := p.job.submit(t, p.node, events.TaskID(fmt.Sprint(idIn(i%pastShards, pastShards), "/n-", i)))
		p.job.next(t).succeed("1")
		want(t, f, "1")
	}
	return p
}

// An entry that cannot be read stops its shard and no other, and no node dies of it or takes it back and forth.
func TestShard_WithADamagedEntryIsQuarantinedAlone(t *testing.T) {
	t.Parallel()
	_, etcd := testcluster.StartEtcd(t)
	url := testcluster.StartNATS(t).URL
	const shards = 4
	st, err := etcdstore.Open(within(t), etcdstore.Config{Client: etcd, Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	const poisoned = 2
	if _, err := etcd.Put(within(t), "taskledger/journal/2/0000000000000001", "garbage"); err != nil {
		t.Fatal(err)
	}
	bus := func() store.Bus {
		b, err := natsbus.Open(natsbus.Config{URLs: []string{url}, Key: st.Cluster().Key})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	j := newJob(task.Policy{})
	n := runNode(t, engine.NodeConfig{Store: st, Bus: bus(), Name: "n", TTL: time.Minute, Behaviors: []task.Behavior{j}})
	session := n.SessionID()
	for shard := range shards {
		id := idIn(shard, shards)
		if shard == poisoned {
			continue
		}
		f := j.submit(t, n, id)
		j.next(t).succeed("1")
		want(t, f, "1")
	}
	if id := n.SessionID(); id != session {
		t.Errorf("session %s after %s: the node has started again", id, session)
	}
	wantQuarantined(t, n.Client, poisoned, shards, "damaged entry")
	wantQuarantined(t, runClient(t, engine.ClientConfig{Bus: bus(), Shards: shards}), poisoned, shards, "damaged entry")
	found, err := n.Ledger().Verify(within(t), ledger.VerifyOptions{})
	if err != nil || found[poisoned].Problem == "" {
		t.Errorf("verification of shard %d: %+v, %v; want the damage", poisoned, found, err)
	}
}

// A journal that lacks an entry, or holds another in its place, is damaged as well.
func TestShard_IsQuarantinedForEveryKindOfDamage(t *testing.T) {
	t.Parallel()
	const damaged, sound = 0, 1 // which holds the settings
	for i, row := range slices.Concat(testcluster.Damages, testcluster.Damages) {
		archives := i >= len(testcluster.Damages)
		t.Run(fmt.Sprint(row.What, ", with an archive: ", archives), func(t *testing.T) {
			t.Parallel()
			p := newPast(t)
			whole := p.Records(damaged)
			p.node.Kill()
			p.Replace(damaged, row.Do(t, slices.Clone(whole)))
			cfg := engine.NodeConfig{Store: p.Store, Name: "next", TTL: time.Minute, Behaviors: []task.Behavior{p.job}}
			if archives {
				cfg.Archive = newShelf()
			}
			n := runNode(t, cfg)
			session := n.SessionID()
			why := fmt.Sprintf("entry %d of shard %d", row.At, damaged)
			wantQuarantined(t, n.Client, damaged, pastShards, why)
			wantQuarantined(t, runClient(t, engine.ClientConfig{Store: p.Store}), damaged, pastShards, why)
			f := p.job.submit(t, n, idIn(sound, pastShards))
			p.job.next(t).succeed("1")
			want(t, f, "1")
			if now := n.SessionID(); now != session {
				t.Errorf("session %s after %s: the node has started again", now, session)
			}
			if rec, err := p.Store.Entry(within(t), damaged, whole[len(whole)-1].Number+1); !errors.Is(err, store.ErrTrimmed) {
				t.Errorf("entry %d, %v was appended to what is damaged", rec.Number, err)
			}
			p.Replace(damaged, whole)
			testcluster.Await(t, "a shard that is served since it was restored", func() bool {
				f, err := n.Submit(within(t), p.job, nil, task.SubmitOptions{ID: idIn(damaged, pastShards)})
				if err == nil {
					p.job.next(t).succeed("2")
					want(t, f, "2")
				}
				return err == nil
			})
		})
	}
}

// wantQuarantined asserts that of a cluster's shards one, at once, tells everybody who asks that it is quarantined,
// and why.
func wantQuarantined(t *testing.T, c *engine.Client, shard, shards int, why string) {
	t.Helper()
	infos, err := c.Operations().Shards(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(infos[shard].Problem)
	for i, info := range infos {
		if quarantined := strings.HasPrefix(info.Problem, "quarantined: ") && strings.Contains(info.Problem, why); quarantined != (i == shard) || !quarantined && info.Problem != "" {
			t.Errorf("shard %d says %q", i, info.Problem)
		}
	}
	wantUnserved(t, c, idIn(shard, shards), why)
}
