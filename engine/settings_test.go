package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
)

// settingsShard is the shard of cluster/settings in a cluster of pastShards.
var settingsShard = events.Settings.Shard(pastShards)

// A node that knows no settings cannot know what is paused. One that knows them goes on.
func TestPause_ThatCannotBeReadLetsNothingStartAndIsExplained(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	whole := p.records(settingsShard)
	p.node.Kill()
	p.replace(settingsShard, damages[0].damage(t, slices.Clone(whole)))
	n := runNode(t, engine.NodeConfig{Store: p.store, Name: "next", TTL: 3 * time.Second, Behaviors: []engine.Behavior{p.job}})

	id := idIn(1-settingsShard, pastShards)
	f := p.job.submit(t, n, id)
	awaitExplained(t, n.Client, id, func(e engine.Explanation) bool { return e.Why == engine.WhySettings && e.Since != 0 },
		fmt.Sprintf("shard %d", settingsShard), "damaged entry")
	p.job.nothing(t)
	wantQuarantined(t, n.Client, settingsShard, pastShards, "It holds what is paused: nodes that begin a session meanwhile start nothing")
	p.replace(settingsShard, whole)
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
	if err := p.node.Pause(within(t), p.job.ID()); err != nil {
		t.Fatal(err)
	}
	p.node.Kill()
	silent, err := p.store.Join(within(t), engine.NodeInfo{Name: "silent"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	testcluster.Await(t, "the end of the first session", func() bool {
		members, err := p.store.ReadMembers(within(t))
		if err != nil {
			return false
		}
		_, err = p.store.Take(within(t), silent, settingsShard, members.Owners[settingsShard])
		return err == nil
	})
	other := &otherJob{newJob(engine.Policy{})}
	n := runNode(t, engine.NodeConfig{Store: p.store, Name: "next", TTL: 3 * time.Second, Behaviors: []engine.Behavior{p.job, other}})
	affinity := idIn(1-settingsShard, pastShards)
	p.job.submit(t, n, affinity+"/paused")
	f, err := n.Submit(within(t), other, nil, engine.SubmitOptions{ID: affinity + "/free"})
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
