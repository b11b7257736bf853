package engine_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// runAgain is a job of which every submit asks for a run.
func runAgain() *job { return newJob(task.Policy{Existing: events.RunAgain}) }

// The call is answered, the answer is lost, and the task has run and ended before the batch is sent again.
func TestSubmit_LostAnswerOfRunAgainRunsOnce(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := runAgain()
	c.StartNode("a", nil, j)
	var deaf atomic.Bool
	w := &wire{heard: only(&deaf, laneSubmit, drop)}
	client := c.StartClient("caller", func(cc *engine.ClientConfig) { cc.Bus = &wiredBus{cc.Bus, w} })
	const submits = 3
	for i := range submits {
		deaf.Store(true)
		submitted := make(chan *engine.Future, 1)
		go func() { submitted <- j.submit(t, client, "x") }()
		j.next(t).succeed(strconv.Itoa(i))
		watcher := c.StartClient("watcher", nil)
		awaitTask(t, watcher.Client, "x", "has run", func(task task.Task) bool { return task.Final() && int(task.Runs) == i+1 })
		deaf.Store(false)
		want(t, <-submitted, strconv.Itoa(i))
	}
	j.nothing(t)
	if kinds := history(t, client.Client, "x"); strings.Count(kinds, "Started") != submits {
		t.Errorf("history is %s, want %d attempts", kinds, submits)
	}
}

// twoWays is a bus on which every batch goes through the store as well.
type twoWays struct {
	store.Bus
	store store.Store
	t     *testing.T
}

func (b *twoWays) Publish(subject, reply string, data []byte) error {
	if parts := strings.Split(reply, "."); strings.HasPrefix(subject, "shard.") && len(parts) == 5 {
		shard, _ := strconv.Atoi(parts[2])
		lane, _ := strconv.ParseUint(parts[3], 10, 8)
		if err := b.store.Post(b.t.Context(), shard, parts[1], uint8(lane), append([]byte(nil), data...)); err != nil && b.t.Context().Err() == nil {
			b.t.Errorf("post: %v", err)
		}
	}
	return b.Bus.Publish(subject, reply, data)
}

// The bus was only slow: the owner gets the batch by both ways.
func TestSubmit_ByBusAndStoreIsDecidedOnce(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 2})
	j := runAgain()
	both := func(store store.Store, bus store.Bus) store.Bus { return &twoWays{bus, store, t} }
	c.StartNode("a", noSlots)
	c.StartNode("b", with(noShards, func(c *cfg) { c.Bus = both(c.Store, c.Bus) }), j)
	client := c.StartClient("caller", func(c *engine.ClientConfig) { c.Bus = both(c.Store, c.Bus) })
	const submits = 20
	for i := range submits {
		f := j.submit(t, client, "x")
		j.next(t).succeed(strconv.Itoa(i))
		want(t, f, strconv.Itoa(i))
	}
	j.nothing(t)
	kinds := history(t, client.Client, "x")
	if n := strings.Count(kinds, "Rescheduled"); n != submits-1 {
		t.Errorf("%d of %d submits made a further run: %s", n, submits-1, kinds)
	}
}

func TestSubmitRaw_OfABadNameSaysOnceWhatIsWrong(t *testing.T) {
	c, err := engine.NewClient(engine.ClientConfig{Bus: brokenBus{}, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	const want = `behavior: id "Bad Name": byte 0 is 'B', want [a-z0-9-]`
	if _, err := c.SubmitRaw(t.Context(), "Bad Name", nil, task.SubmitOptions{}); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
