package integration_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
)

// asked holds the kind of an operator's request, and its caller.
type asked struct {
	kind   events.Kind
	caller events.Caller
}

// readExport verifies an export and returns, from the text of the file alone, which events that are for callers it
// shows.
func readExport(t *testing.T, export string) (all []asked) {
	t.Helper()
	if v, err := ledger.VerifyExport(strings.NewReader(export)); err != nil || v.Damage != "" {
		t.Fatalf("the export: %+v, %v", v, err)
	}
	for line := range strings.Lines(export) {
		var l struct {
			Entry, Head, Digests []byte
			Origins              []events.ShownOrigin
			Shown                []events.Shown
		}
		ok(t, json.Unmarshal([]byte(line), &l))
		var e *events.Entry
		var err error
		switch {
		case l.Entry != nil:
			e, err = events.Decode(l.Entry)
		case l.Head != nil:
			x := events.Excerpt{Head: l.Head, Origins: l.Origins, Shown: l.Shown}
			for digest := range slices.Chunk(l.Digests, len(events.Hash{})) {
				x.Digests = append(x.Digests, events.Hash(digest))
			}
			e, err = x.Open()
		default:
			continue
		}
		ok(t, err)
		for i := range e.Events {
			if ev := &e.Events[i]; ev.Caller.RequestID != "" {
				all = append(all, asked{ev.Kind(), ev.Caller})
			}
		}
	}
	return all
}

// Whoever a service acts for stands in every event that follows, whatever the command, and in an export that is checked
// without the cluster.
func TestCaller_OfEveryCommandStandsInTheHistory(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("gateway", nil)
		w.submitWith(t, n, "x", inAnHour())
		var ofTask, ofSettings []asked
		as := func(list *[]asked, kind events.Kind, who string) context.Context {
			caller := events.Caller{Principal: who, RequestID: "r-" + who, Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
			*list = append(*list, asked{kind, caller})
			return engine.WithCaller(within(t, soon), caller)
		}
		final := func() {
			t.Helper()
			testcluster.Await(t, "the end of the attempt", func() bool {
				task, err := client.Get(within(t, soon), "x")
				return err == nil && task.Final()
			})
		}
		ok(t, client.Operations().Suspend(as(&ofTask, events.KindSuspended, "ada"), "x", ""))
		ok(t, client.Operations().Resume(as(&ofTask, events.KindResumed, "grace"), "x"))
		ok(t, client.Operations().RunNow(as(&ofTask, events.KindRescheduled, "linus"), "x"))
		r := w.next(t)
		ok(t, client.Operations().Cancel(as(&ofTask, events.KindCancelRequested, "ken"), "x", "enough"))
		<-r.ctx.Done()
		final()
		ok(t, second(client.Operations().Retry(as(&ofTask, events.KindRescheduled, "rob"), "x")))
		w.next(t).succeed("done")
		final()
		ok(t, client.Operations().Delete(as(&ofTask, events.KindDeleted, "barbara"), "x"))
		ok(t, client.Operations().Pause(as(&ofSettings, events.KindPaused, "dennis"), "work", "a migration"))
		ok(t, client.Operations().Unpause(as(&ofSettings, events.KindUnpaused, "edsger"), "work"))

		var told []asked
		for ev, err := range client.Ledger().History(within(t, soon), "x") {
			ok(t, err)
			if ev.Caller.RequestID != "" {
				told = append(told, asked{ev.Kind(), ev.Caller})
			}
		}
		if !slices.Equal(told, ofTask) {
			t.Errorf("the history tells of %+v, want %+v", told, ofTask)
		}
		var task strings.Builder
		ok(t, client.Ledger().ExportTask(within(t, soon), "x", &task, nil))
		if got := readExport(t, task.String()); !slices.Equal(got, ofTask) {
			t.Errorf("the export of the task shows %+v, want %+v", got, ofTask)
		}
		inShards := map[int][]asked{}
		for _, part := range []struct {
			of   events.TaskID
			what []asked
		}{{"x", ofTask}, {events.Settings, ofSettings}} {
			shard := part.of.Shard(c.Shards())
			inShards[shard] = append(inShards[shard], part.what...)
		}
		for shard, want := range inShards {
			var whole strings.Builder
			ok(t, client.Ledger().ExportShard(within(t, soon), shard, &whole, nil))
			if got := readExport(t, whole.String()); !slices.Equal(got, want) {
				t.Errorf("the export of shard %d shows %+v, want %+v", shard, got, want)
			}
		}
	})
}

// An caller that no event can hold is refused by name, and nothing is sent.
func TestCaller_ThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	n := c.StartNode("a", nil, w.on("a"))
	w.submitWith(t, n, "x", inAnHour())
	err := n.Operations().Suspend(engine.WithCaller(within(t, soon), events.Caller{RequestID: strings.Repeat("x", events.MaxNameBytes+1)}), "x", "")
	if err == nil || !strings.Contains(err.Error(), "caller") || !strings.Contains(err.Error(), "256") {
		t.Errorf("a request id of 257 bytes: %v, want an error that names the field and the limit", err)
	}
	if task, err := n.Get(within(t, soon), "x"); err != nil || task.Suspended {
		t.Errorf("the task is %+v, %v; want it as before", task, err)
	}
}
