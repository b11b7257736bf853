package integration_test

import (
	"strings"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
)

// Whoever a service acts for stands in every event that follows, whatever the command, and in an export that is checked without the cluster.
func TestAsker_OfEveryCommandStandsInTheHistory(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("gateway", nil)
		asker := func(name string) events.Asker {
			return events.Asker{Principal: name, RequestID: "r-" + name, Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
		}
		w.submitWith(t, n, "x", inAnHour())
		var want []events.Asker
		for _, step := range []struct {
			who string
			do  func(who string) error
		}{
			{"ada", func(who string) error { return client.Suspend(engine.WithAsker(within(t, soon), asker(who)), "x") }},
			{"grace", func(who string) error { return client.Resume(engine.WithAsker(within(t, soon), asker(who)), "x") }},
			{"linus", func(who string) error { return client.RunNow(engine.WithAsker(within(t, soon), asker(who)), "x") }},
		} {
			ok(t, step.do(step.who))
			want = append(want, asker(step.who))
		}
		r := w.next(t)
		ok(t, client.Cancel(engine.WithAsker(within(t, soon), asker("ken")), "x", "enough"))
		want = append(want, asker("ken"))
		<-r.ctx.Done()
		testcluster.Await(t, "the end of the attempt", func() bool {
			task, err := client.Get(within(t, soon), "x")
			return err == nil && task.Final()
		})
		ok(t, client.Retry(engine.WithAsker(within(t, soon), asker("rob")), "x"))
		want = append(want, asker("rob"))

		var got []events.Asker
		for ev, err := range client.Ledger().History(within(t, soon), "x") {
			ok(t, err)
			if ev.Asker.RequestID != "" {
				got = append(got, ev.Asker)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("asked by %+v, want %+v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("event %d was asked by %+v, want %+v", i, got[i], want[i])
			}
		}
		var export strings.Builder
		ok(t, client.Ledger().ExportTask(within(t, soon), "x", &export, nil))
		if v, err := ledger.VerifyExport(strings.NewReader(export.String())); err != nil || v.Damage != "" {
			t.Errorf("the export: %+v, %v", v, err)
		}
	})
}

// An asker that no event can hold is refused by name, and nothing is sent.
func TestAsker_ThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{TTL: lasting})
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	n := c.StartNode("a", nil, w.on("a"))
	w.submitWith(t, n, "x", inAnHour())
	err := n.Suspend(engine.WithAsker(within(t, soon), events.Asker{RequestID: strings.Repeat("x", events.MaxNameBytes+1)}), "x")
	if err == nil || !strings.Contains(err.Error(), "asker") || !strings.Contains(err.Error(), "256") {
		t.Errorf("a request id of 257 bytes: %v, want an error that names the field and the limit", err)
	}
	if task, err := n.Get(within(t, soon), "x"); err != nil || task.Suspended {
		t.Errorf("the task is %+v, %v; want it as before", task, err)
	}
}
