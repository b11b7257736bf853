package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

// The quarantine cannot begin an ownership of its own, which is a write.
func TestQuarantine_WhileEtcdIsFullSubmitsAreTurnedDown(t *testing.T) {
	const shard = 3
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, true)
		job := newJob(task.Policy{})
		c.start("a", 0, nil, job).ready(t)
		id := idIn(shard, modelledShards)
		f := job.submit(t, c.nodes[0].Node, id)
		job.next(t).succeed("1")
		want(t, f, "1")
		c.nodes[0].crash()
		c.write(fmt.Sprintf("taskledger/journal/%d/%016x", shard, 1), "garbage")
		for _, name := range []string{"b", "c"} {
			c.start(name, 0, func(cfg *cfg) {
				cfg.Store = &fillingStore{cfg.Store, shard, func() { c.etcd.SetFull(true) }}
			}, job)
		}
		nodes := c.nodes[1:]
		broken := func() bool { return nodes[0].broke.Load() != nil || nodes[1].broke.Load() != nil }
		for began := time.Now(); !broken(); time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatal("no owner has met the damage")
			}
		}
		for range 5 {
			time.Sleep(2 * time.Second)
			for _, n := range nodes {
				began := time.Now()
				_, err := n.Submit(within(t), job, nil, task.SubmitOptions{ID: id + "/another"})
				if took := time.Since(began); !errors.Is(err, store.ErrUnavailable) || !tellsUnserved(submits, err, "remedy: ") || took > time.Second {
					t.Errorf("a submit to %s ends after %s with %v", n.name, took, err)
				}
			}
		}
		c.etcd.SetFull(false)
	})
}

// countingStore counts the letters of reports and offers.
type countingStore struct {
	store.Store
	letters atomic.Int64
}

func (s *countingStore) Post(ctx context.Context, shard int, sender string, lane uint8, batch []byte) error {
	if lane == 1 || lane == 3 {
		s.letters.Add(1)
	}
	return s.Store.Post(ctx, shard, sender, lane, batch)
}

// An attempt ends while the shard of its task cannot be served, for longer than submits are sent again.
func TestQuarantine_OutcomesWaitForItsEnd(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	const shard = 3
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, true)
		job := newJob(task.Policy{})
		c.start("a", 0, nil).ready(t) // owns the shard, and runs nothing
		runner := &countingStore{}
		c.start("b", 0, func(cfg *cfg) {
			no := false
			runner.Store, cfg.Store, cfg.Owner = cfg.Store, runner, &no
		}, job).ready(t)
		a, b := c.nodes[0], c.nodes[1]
		id := idIn(shard, modelledShards)
		f := job.submit(t, b.Node, id)
		attempt := job.next(t)
		infos, err := a.Operations().Shards(within(t))
		if err != nil {
			t.Fatal(err)
		}
		next := fmt.Sprintf("taskledger/journal/%d/%016x", shard, infos[shard].Entries+1)
		c.write(next, "garbage")
		attempt.succeed("1")
		for began := time.Now(); a.broke.Load() == nil; time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatal("the owner has not met the damage")
			}
		}
		time.Sleep(10 * time.Second)
		before := runner.letters.Load()
		time.Sleep(31 * time.Minute)
		if n := runner.letters.Load() - before; n > 0 {
			t.Errorf("%d letters in half an hour to an owner that the bus reaches", n)
		}
		c.write(next, "")
		want(t, f, "1")
		job.nothing(t)
		if n := job.count.Load(); n != 1 {
			t.Errorf("%d attempts, want 1", n)
		}
	})
}

// Without NATS a future follows the journal. Something that is no entry is removed from it, and the entry with the
// outcome takes its place.
func TestQuarantine_OutcomeInThePlaceOfWhatWasNoEntryIsHeardWithoutNATS(t *testing.T) {
	const shard = 3
	synctest.Test(t, func(t *testing.T) {
		c, job := newModelled(t, false), newJob(task.Policy{})
		a := c.start("a", 0, nil, job)
		a.ready(t)
		b := c.start("b", 0, noShards)
		b.ready(t)
		id := idIn(shard, modelledShards)
		f := job.submit(t, b.Node, id)
		f.Done() // begins to wait
		attempt := job.next(t)
		time.Sleep(time.Second)
		infos, err := a.Operations().Shards(within(t))
		if err != nil {
			t.Fatal(err)
		}
		next := fmt.Sprintf("taskledger/journal/%d/%016x", shard, infos[shard].Entries+1)
		c.write(next, "garbage")
		attempt.succeed("1")
		time.Sleep(90 * time.Second)
		c.write(next, "")
		removed := time.Now()
		want(t, f, "1")
		if took := time.Since(removed); took > 6*time.Second {
			t.Errorf("the outcome was known %s after what stood in its place was removed", took)
		}
	})
}
