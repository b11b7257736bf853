package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// The owner commits what was asked and dies; its answers are lost. The next owner answers the same batch.
func TestOperate_SentAgainToTheNextOwnerIsDecidedOnce(t *testing.T) {
	for name, row := range map[string]struct {
		ask   func(client *engine.Client, t *testing.T) error
		event events.Kind
		want  string // history, up to the event
	}{
		"Retry":   {func(c *engine.Client, t *testing.T) error { _, err := c.Operations().Retry(within(t), "x"); return err }, events.KindRescheduled, "Created Started Succeeded Rescheduled"},
		"Suspend": {func(c *engine.Client, t *testing.T) error { return c.Operations().Suspend(within(t), "y", "") }, events.KindSuspended, "Created Suspended"},
		"Cancel":  {func(c *engine.Client, t *testing.T) error { return c.Operations().Cancel(within(t), "y", "") }, events.KindFailed, "Created Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testcluster.New(t, testcluster.Options{})
			j := newJob(task.Policy{})
			var unresponsive atomic.Bool
			w := &wire{answered: only(&unresponsive, laneSubmit, drop)}
			a := c.StartNode("a", with(noSlots, w.through))
			runner := c.StartNode("b", noShards, j)
			client := c.StartClient("caller", nil)
			want := want
			f := j.submit(t, client, "x")
			j.next(t).succeed("1")
			want(t, f, "1")
			runner.Stop() // what waits now stays as it is
			j.submit(t, client, "y")
			unresponsive.Store(true)
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
