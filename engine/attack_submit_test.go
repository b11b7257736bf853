package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/projection"
	"taskledger/store"
)

// runAgain is a job of which every submit asks for a run.
func runAgain() *job { return newJob(engine.Policy{Existing: events.RunAgain}) }

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
		awaitTask(t, watcher.Client, "x", "has run", func(task projection.Task) bool { return task.Final() && int(task.Runs) == i+1 })
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

// The owner commits what was asked and dies; its answers are lost. The next owner answers the same batch.
func TestOperate_SentAgainToTheNextOwnerIsDecidedOnce(t *testing.T) {
	for name, row := range map[string]struct {
		ask   func(client *engine.Client, t *testing.T) error
		event events.Kind
		want  string // history, up to the event
	}{
		"Retry":   {func(c *engine.Client, t *testing.T) error { _, err := c.Retry(within(t), "x"); return err }, events.KindRescheduled, "Created Started Succeeded Rescheduled"},
		"Suspend": {func(c *engine.Client, t *testing.T) error { return c.Suspend(within(t), "y", "") }, events.KindSuspended, "Created Suspended"},
		"Cancel":  {func(c *engine.Client, t *testing.T) error { return c.Cancel(within(t), "y", "") }, events.KindFailed, "Created Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testcluster.New(t, testcluster.Options{})
			j := newJob(engine.Policy{})
			var mute atomic.Bool
			w := &wire{answered: only(&mute, laneSubmit, drop)}
			a := c.StartNode("a", with(noSlots, w.through))
			runner := c.StartNode("b", noShards, j)
			client := c.StartClient("caller", nil)
			want := want
			f := j.submit(t, client, "x")
			j.next(t).succeed("1")
			want(t, f, "1")
			runner.Stop() // what waits now stays as it is
			j.submit(t, client, "y")
			mute.Store(true)
			answered := make(chan error, 1)
			go func() { answered <- row.ask(client.Client, t) }()
			id := events.TaskID("y")
			if name == "Retry" {
				id = "x"
			}
			testcluster.Await(t, "the event", func() bool { return strings.HasSuffix(history(t, client.Client, id), row.event.String()) })
			a.Kill()
			c.StartNode("d", noSlots)
			if err := <-answered; err != nil {
				t.Errorf("answer: %v", err)
			}
			wantHistory(t, client.Client, id, row.want)
		})
	}
}

// The merge was computed on parameters that another submit has changed since: it must be computed again, and every
// submit must be in the sum once.
func TestMerge_ConcurrentSubmitsAreAllInTheSum(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	j := &adder{newJob(engine.Policy{})}
	c.StartNode("a", noSlots)
	everything := func(string) fate { return twice }
	w := &wire{sent: everything, heard: everything}
	const clients, each = 3, 4
	var done = make(chan int, clients)
	for i := range clients {
		client := c.StartClient(fmt.Sprint("caller", i), func(cc *engine.ClientConfig) { cc.Bus = &wiredBus{cc.Bus, w} })
		go func() {
			accepted := 0
			for accepted < each {
				_, err := client.Submit(within(t), j, []byte("1"), engine.SubmitOptions{ID: "x"})
				if err != nil && t.Context().Err() != nil {
					break
				}
				if err == nil { // after five changes in a row the submit is refused, and nothing was accepted
					accepted++
				}
			}
			done <- accepted
		}()
	}
	total := 0
	for range clients {
		total += <-done
	}
	c.StartNode("b", noShards, j)
	r := j.next(t)
	if string(r.Params) != strconv.Itoa(total) {
		t.Errorf("parameters are %s after %d submits of 1", r.Params, total)
	}
	r.succeed("1")
}

// adder is a job whose parameters add up.
type adder struct{ *job }

func (a *adder) Merge(stored, requested []byte) ([]byte, error) {
	x, err := strconv.Atoi(string(stored))
	if err != nil {
		return nil, err
	}
	y, err := strconv.Atoi(string(requested))
	return []byte(strconv.Itoa(x + y)), err
}

// The task is forgotten before anybody waits for it: the journal still knows its end.
func TestFuture_OfAForgottenTaskIsAnsweredFromTheJournal(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	j := newJob(engine.Policy{Retain: 1})
	c.StartNode("a", nil, j)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	j.next(t).succeed("1")
	others := 0
	testcluster.Await(t, "the task is forgotten", func() bool {
		others++
		other := j.submit(t, client, events.TaskID(fmt.Sprint("y", others))) // an entry of a later time
		j.next(t).succeed("2")
		want(t, other, "2")
		_, err := client.GetLinear(within(t), "x")
		return err != nil
	})
	want(t, f, "1")
}
