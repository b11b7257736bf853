package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/modeletcd"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
)

// settingsShard is the shard of the settings in a cluster of pastShards.
var settingsShard = events.Settings.Shard(pastShards)

func TestSettings_TellWhatIsPausedWhyByWhomAndSinceWhen(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	before := events.MillisOf(time.Now())
	if err := p.node.Operations().Pause(within(t), p.job.ID(), "a migration"); err != nil {
		t.Fatal(err)
	}
	after := events.MillisOf(time.Now())
	if err := p.node.Operations().Pause(within(t), p.job.ID(), "another reason"); err != nil {
		t.Fatal(err)
	}
	s, err := p.node.Operations().Settings(within(t))
	if err != nil || len(s.Paused) != 1 || s.Paused[0].Behavior != p.job.ID() || s.Paused[0].Reason != "a migration" || s.Paused[0].By != "n" ||
		s.Paused[0].Since < before || s.Paused[0].Since > after {
		t.Fatalf("%+v, %v; want a pause of %s since %d to %d", s, err, p.job.ID(), before, after)
	}
	id := idIn(0, pastShards)
	p.job.submit(t, p.node, id)
	created, err := p.node.Get(within(t), id)
	if err != nil {
		t.Fatal(err)
	}
	awaitExplained(t, p.node.Client, id, func(e engine.Explanation) bool { // no task was kept from starting before it was there
		return e.Why == task.WhyPaused && e.Since == max(s.Paused[0].Since, created.CreatedAt)
	}, "a migration")

	var limit *task.LimitError
	if err := p.node.Operations().Pause(within(t), "other", strings.Repeat("x", events.MaxNameBytes+1)); !errors.As(err, &limit) || limit.Field != "reason" {
		t.Errorf("a long reason: %v, want a LimitError of reason", err)
	}
	if err := p.node.Operations().Unpause(within(t), p.job.ID()); err != nil {
		t.Fatal(err)
	}
	if s, err := p.node.Operations().Settings(within(t)); err != nil || len(s.Paused) != 0 {
		t.Errorf("after the pause: %+v, %v", s, err)
	}
	p.job.next(t).succeed("1")
}

// A node that knows no settings cannot know what is paused. One that knows them goes on.
func TestPause_ThatCannotBeReadLetsNothingStartAndIsExplained(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	whole := p.Records(settingsShard)
	p.node.Kill()
	p.Replace(settingsShard, testcluster.Damages[0].Do(t, slices.Clone(whole)))
	n := runNode(t, engine.NodeConfig{Store: p.Store, Name: "next", TTL: time.Minute, Behaviors: []task.Behavior{p.job}})

	id := idIn(1-settingsShard, pastShards)
	f := p.job.submit(t, n, id)
	awaitExplained(t, n.Client, id, func(e engine.Explanation) bool { return e.Why == task.WhySettings && e.Since != 0 },
		fmt.Sprintf("shard %d", settingsShard), "damaged entry")
	p.job.nothing(t)
	wantQuarantined(t, n.Client, settingsShard, pastShards, "It holds what is paused: nodes that begin a session meanwhile start nothing")
	p.Replace(settingsShard, whole)
	p.job.next(t).succeed("1") // as soon as they can be read
	want(t, f, "1")
}

// awaitExplained waits until a task is explained as it should be, with texts that name what is to be known.
func awaitExplained(t *testing.T, c *engine.Client, id events.TaskID, holds func(engine.Explanation) bool, names ...string) engine.Explanation {
	t.Helper()
	var last engine.Explanation
	testcluster.Await(t, "an explanation of "+string(id), func() bool {
		e, err := c.Explain(within(t), id)
		last = e
		return err == nil && holds(e)
	})
	for _, name := range names {
		if !strings.Contains(last.Text, name) {
			t.Errorf("explanation %q does not name %q", last.Text, name)
		}
	}
	return last
}

// The owner of the settings lives and does not answer: they are read from the store.
func TestPause_HoldsWhileTheOwnerOfTheSettingsIsSilent(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	if err := p.node.Operations().Pause(within(t), p.job.ID(), ""); err != nil {
		t.Fatal(err)
	}
	p.node.Kill()
	silent, err := p.Store.Join(within(t), store.NodeInfo{Name: "silent", Reads: ledger.Reads()}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	testcluster.Await(t, "the end of the first session", func() bool {
		members, err := p.Store.ReadMembers(within(t))
		if err != nil {
			return false
		}
		_, err = p.Store.Take(within(t), silent, settingsShard, members.Owners[settingsShard])
		return err == nil
	})
	other := &otherJob{newJob(task.Policy{})}
	n := runNode(t, engine.NodeConfig{Store: p.Store, Name: "next", TTL: time.Minute, Behaviors: []task.Behavior{p.job, other}})
	affinity := idIn(1-settingsShard, pastShards)
	p.job.submit(t, n, affinity+"/paused")
	f, err := n.Submit(within(t), other, nil, task.SubmitOptions{ID: affinity + "/free"})
	if err != nil {
		t.Fatal(err)
	}
	other.next(t).succeed("1")
	want(t, f, "1")
	p.job.nothing(t)
}

// otherJob is a job under another name.
type otherJob struct{ *job }

func (*otherJob) ID() string { return "other" }

// Something is paused while a process is cut off. Its next session starts nothing of it, whichever shards it serves
// first.
func TestPause_HoldsInTheNextSessionOfWhoWasCutOff(t *testing.T) {
	t.Parallel()
	for _, withBus := range []bool{true, false} {
		t.Run(fmt.Sprint("NATS: ", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, withBus)
				cut := &modeletcd.Cut{}
				c.ways = map[string]modeletcd.Transport{"cut off": cut}
				job := newJob(task.Policy{})
				n := c.start("cut off", 0, func(c *cfg) { c.Store = &slowSettings{c.Store} }, job)
				n.ready(t)
				f := job.submit(t, n.Node, idIn(1, modelledShards)) // it knows that nothing is paused
				job.next(t).succeed("1")
				want(t, f, "1")

				cut.Off()
				time.Sleep(2 * modelledTTL)
				other := c.start("other", 0, nil, job)
				other.ready(t)
				time.Sleep(modelledTTL)
				if err := other.Operations().Pause(within(t), job.ID(), ""); err != nil {
					t.Fatal(err)
				}
				for shard := range modelledShards {
					job.submit(t, other.Node, idIn(shard, modelledShards)+"/paused")
				}
				other.crash()

				cut.On()
				time.Sleep(3 * modelledTTL)
				shards, err := n.Operations().Shards(within(t))
				if err != nil || slices.ContainsFunc(shards, func(s engine.ShardInfo) bool { return s.Owner != n.SessionID() || s.Problem != "" }) {
					t.Fatalf("not every shard is served: %+v, %v", shards, err)
				}
				if started := job.count.Load() - 1; started != 0 {
					t.Errorf("%d of %d paused tasks have started", started, modelledShards)
				}
				if err := n.Operations().Unpause(within(t), job.ID()); err != nil {
					t.Fatal(err)
				}
				for range modelledShards {
					job.next(t).succeed("2")
				}
			})
		})
	}
}

// slowSettings is a store from which the shard of the settings is read a second later than others.
type slowSettings struct{ store.Store }

func (s *slowSettings) Pointer(ctx context.Context, shard int) (store.SnapshotPointer, error) {
	if shard == events.Settings.Shard(modelledShards) {
		time.Sleep(time.Second)
	}
	return s.Store.Pointer(ctx, shard)
}
