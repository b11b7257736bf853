package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/meter"
	"taskledger/task"
)

// figure names a counter of a behavior.
type figure struct{ behavior, name string }

// sums implements meter.Meter for several nodes.
type sums struct {
	mu     sync.Mutex
	counts map[figure]int64
}

// Count implements meter.Meter.
func (s *sums) Count(c meter.Counter, behavior string, n int64) {
	s.add(figure{behavior, meter.Counters[c].Name}, n)
}

// Observe implements meter.Meter.
func (s *sums) Observe(h meter.Histogram, behavior string, values []float64) {
	s.add(figure{behavior, meter.Histograms[h].Name}, int64(len(values)))
}

// Set implements meter.Meter.
func (s *sums) Set(meter.Gauge, string, float64) {}

func (s *sums) add(f figure, n int64) {
	if f.behavior == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[f] += n
}

// of counts an event as the journals have it.
func (s *sums) of(ev ledger.Event) {
	count := func(c meter.Counter) { s.add(figure{ev.Behavior, meter.Counters[c].Name}, 1) }
	time := func(h meter.Histogram) { s.add(figure{ev.Behavior, meter.Histograms[h].Name}, 1) }
	switch b := ev.Body.(type) {
	case *events.Created:
		count(meter.TasksCreated)
	case *events.Started:
		count(meter.AttemptsStarted)
		time(meter.Lateness)
		if b.Attempt == 1 {
			time(meter.Wait)
		}
	case *events.Succeeded:
		count(meter.AttemptsSucceeded)
		time(meter.Duration)
	case *events.Failed:
		count(meter.Failures)
		if b.Run != 0 && b.Next == 0 {
			count(meter.FinalFailures)
		}
		if b.Error.Code != events.CodeCancelled {
			time(meter.Duration)
		}
	case *events.Lost:
		count(meter.AttemptsLost)
	case *events.Snoozed:
		count(meter.AttemptsSnoozed)
	case *events.Released:
		count(meter.AttemptsReleased)
	case *events.Deleted:
		count(meter.TasksDeleted)
	}
}

// Of three nodes one leaves, one dies with attempts, and one comes. What all of them measured is what the journals
// hold, to the task; and what owners tell is what the journals hold since they took their shards.
func TestFigures_OfThreeNodesAgreeWithTheJournals(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{TTL: 6 * time.Second})
	policy := task.Policy{MaxAttempts: 2, Backoff: task.Backoff{Base: time.Millisecond, Max: 10 * time.Millisecond}}
	held := defineWork("held", &behaviors.Rules[string, string]{TaskID: idFromParams})
	mixed := defineMixed(policy)
	measured := &sums{counts: map[figure]int64{}}
	start := func(names ...string) []*testcluster.Node {
		return c.StartNodes(func(cfg *engine.NodeConfig) { cfg.Meter = measured },
			func(node string) []task.Behavior { return []task.Behavior{held.on(node), mixed.bind()} }, names...)
	}
	nodes := start("a", "b", "c")
	a, leaves, dies := nodes[0], nodes[1], nodes[2]
	c.AwaitSpread()
	mixed.many(t, a, "first")
	leaves.Stop()
	mixed.many(t, a, "second")
	losesAttempts(t, a, dies, held)
	start("d")
	c.AwaitSpread()
	mixed.many(t, a, "third")

	want, since := agreed(t, a, measured)
	if want.counts[figure{"held", "attempts_lost_total"}] == 0 {
		t.Error("no attempt was lost: the test shows nothing of it")
	}
	for _, name := range []string{"tasks_created_total", "attempts_succeeded_total", "failures_total", "failures_final_total", "attempts_snoozed_total", "tasks_deleted_total"} {
		if want.counts[figure{"mixed", name}] == 0 || since.counts[figure{"mixed", name}] == want.counts[figure{"mixed", name}] {
			t.Errorf("%s is %d, %d since the owners took their shards: the test shows nothing of it", name,
				want.counts[figure{"mixed", name}], since.counts[figure{"mixed", name}])
		}
	}
}

// losesAttempts lets attempts run on a node that is killed then, while nothing else is done, and all of them end
// elsewhere.
func losesAttempts(t *testing.T, a, dies *testcluster.Node, held *work) {
	t.Helper()
	var open []*behaviors.Future[string]
	for i, there := 0, 0; there == 0 || i < 8; i++ {
		open = append(open, held.submit(t, a, fmt.Sprint("held-", i)))
		if r := held.next(t); r.node == dies.Name {
			there++
		} else {
			r.succeed("done")
		}
	}
	for _, f := range open { // whatever does not run on the node that dies has ended
		awaitTask(t, a, f.ID(), "ends or runs on "+dies.Name, func(p task.Task) bool { return p.Final() || strings.HasPrefix(p.Session, dies.Name+"-") })
	}
	dies.Kill()
	go func() {
		for {
			select {
			case r := <-held.started:
				r.succeed("again")
			case <-t.Context().Done():
				return
			}
		}
	}()
	for _, f := range open {
		if _, err := f.Wait(within(t, soon)); err != nil {
			t.Errorf("%s: %v", f.ID(), err)
		}
	}
}

// agreed compares what the meters of all nodes were told, and what the owners tell, with the journals. It returns what
// these hold, and what they hold since the owners took their shards.
func agreed(t *testing.T, a *testcluster.Node, measured *sums) (want, since *sums) {
	t.Helper()
	want, since = &sums{counts: map[figure]int64{}}, &sums{counts: map[figure]int64{}}
	shards, err := a.Operations().Shards(within(t, soon))
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range a.Ledger().Replay(within(t, soon), ledger.ReplayOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		want.of(ev)
		if ev.Position.Ref.Entry() >= shards[ev.Position.Shard].Began {
			since.of(ev)
		}
	}
	same(t, "the meters of all nodes", measured.counts, want.counts)
	told := &sums{counts: map[figure]int64{}}
	for _, s := range shards {
		if s.Problem != "" {
			t.Errorf("shard %d: %s", s.Shard, s.Problem)
		}
		for _, f := range s.Figures {
			for i, n := range f.Counts {
				told.Count(meter.Counter(i), f.Behavior, n)
			}
			for i := range f.Times {
				told.add(figure{f.Behavior, meter.Histograms[i].Name}, f.Times[i].N())
			}
		}
	}
	same(t, "the owners", told.counts, since.counts)
	return want, since
}

// same compares what is not 0.
func same(t *testing.T, whose string, got, want map[figure]int64) {
	t.Helper()
	zero := func(_ figure, n int64) bool { return n == 0 }
	maps.DeleteFunc(got, zero)
	maps.DeleteFunc(want, zero)
	if maps.Equal(got, want) {
		return
	}
	for f := range want {
		if got[f] != want[f] {
			t.Errorf("%s: %s of %s is %d, and %d in the journals", whose, f.name, f.behavior, got[f], want[f])
		}
	}
	for f, n := range got {
		if _, wanted := want[f]; !wanted {
			t.Errorf("%s: %s of %s is %d, and 0 in the journals", whose, f.name, f.behavior, n)
		}
	}
}

// mixed is a behavior whose tasks end in every way: by the last letter of their parameters.
type mixed struct {
	*behaviors.Behavior[string, string]
}

func defineMixed(p task.Policy) mixed {
	return mixed{behaviors.Define("mixed", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: p})}
}

func (m mixed) bind() task.Behavior {
	return m.Bind(func(ctx context.Context, params string) (string, error) {
		attempt, _ := behaviors.Attempt(ctx)
		switch {
		case strings.HasSuffix(params, "fails"), strings.HasSuffix(params, "retried") && attempt.Number == 1:
			return "", errors.New("no luck")
		case strings.HasSuffix(params, "snoozes") && attempt.Number == 1:
			return "", behaviors.Snooze(0)
		}
		return params, nil
	})
}

// many submits tasks that end in every way, waits for them, and deletes some.
func (m mixed) many(t *testing.T, to *testcluster.Node, name string) {
	t.Helper()
	var all []*behaviors.Future[string]
	for i := range 12 {
		for _, how := range []string{"succeeds", "fails", "retried", "snoozes"} {
			f, err := m.Submit(within(t, soon), to, fmt.Sprintf("%s-%d-%s", name, i, how))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
		}
	}
	for i, f := range all {
		if _, err := f.Wait(within(t, soon)); (err != nil) != strings.HasSuffix(string(f.ID()), "fails") {
			t.Errorf("%s: %v", f.ID(), err)
		}
		if i%5 == 0 {
			if err := to.Operations().Delete(within(t, soon), f.ID()); err != nil {
				t.Errorf("delete %s: %v", f.ID(), err)
			}
		}
	}
}
