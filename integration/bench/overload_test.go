package bench_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/internal/measure"
)

const (
	overloadFactor   = 2 // of the peak
	overloadInFlight = 1000
)

// BenchmarkOverload finds the peak of one node by a closed loop of noop tasks, and then submits twice as many a second,
// whatever becomes of them. The generator of both loads is a process of its own. It has half of the processors to
// itself, on Linux, so that it takes none of the node's. Goodput is the share of the peak that is completed while the
// open loop lasts.
func BenchmarkOverload(b *testing.B) {
	run(b, func(tb testing.TB) figures {
		return overload(tb, overloadInFlight, lasts(time.Second, 10*time.Second), lasts(time.Second, 20*time.Second))
	})
}

// overloaded is a node and the generator of its load.
type overloaded struct {
	generator *child
	done      atomic.Int64 // attempts that ended with SUCCESS
}

func overload(tb testing.TB, inFlight int, peak, lasting time.Duration) figures {
	s, o := servers(tb, 0), &overloaded{}
	counted := behaviors.Define[behaviors.None, behaviors.None](noop.ID(), nil).Bind(
		func(context.Context, behaviors.None) (behaviors.None, error) {
			o.done.Add(1)
			return behaviors.None{}, nil
		})
	cfg := runs(counted)
	cfg.Name, cfg.Slots = "a", measure.SlotsFor(inFlight)
	n := node(tb, s, cfg)
	before := must(n.Cluster.Store.ReadMembers(tb.Context()))(tb)
	f := newFigures(tb)
	nodeProcs, itsProcs, whole, err := apart(func() error {
		o.generator = spawn(tb, "generator")
		return nil
	})
	if whole != nil {
		tb.Cleanup(func() { ended(tb, whole()) })
	}
	check(tb, err)
	f.is("node-processors", float64(nodeProcs))
	f.is("generator-processors", float64(itsProcs))
	where := generatorConfig{Etcd: s.EtcdEndpoint(), NATS: s.NATSURL(), NKey: s.NATSNKey()}
	check(tb, o.generator.in.Encode(where))

	o.run(tb, load{InFlight: inFlight, For: measure.WarmUp})
	closed, top := o.run(tb, load{InFlight: inFlight, For: peak})
	peakPerS := float64(top.Accepted) / top.Took.Seconds()
	f.is("peak-task/s", peakPerS)
	f.is("peak-node-cpu", closed.CPU.Seconds()/closed.Took.Seconds())
	f.is("peak-generator-cpu", top.CPU.Seconds()/top.Took.Seconds())

	w, open := o.run(tb, load{Rate: overloadFactor * peakPerS, For: lasting})
	perSecond := func(n int) float64 { return float64(n) / w.Took.Seconds() }
	f.is("offered/s", overloadFactor*peakPerS)
	f.is("sent/s", perSecond(open.Sent))
	f.is("accepted/s", perSecond(open.Accepted))
	f.tasks("good-task", w)
	f.is("goodput", w.PerSecond()/peakPerS)
	f.is("node-cpu", w.CPU.Seconds()/w.Took.Seconds())
	f.is("generator-cpu", open.CPU.Seconds()/w.Took.Seconds())
	open.report(f)
	lost, after := 0, must(n.Cluster.Store.ReadMembers(tb.Context()))(tb)
	for id := range before.Nodes {
		if _, lives := after.Nodes[id]; !lives {
			lost++
		}
	}
	f.is("sessions-lost", float64(lost))
	return f
}

// run has the generator make a load. It returns the work of the node until the last submit of it was due.
func (o *overloaded) run(tb testing.TB, l load) (w measure.Window, m made) {
	tb.Helper()
	cpu, done, begun := must(measure.CPU())(tb), o.done.Load(), time.Now()
	err := o.generator.ask(l, &m) // the load is over, not what it left behind
	w.Took, w.Count = time.Since(begun), int(o.done.Load()-done)
	w.CPU = must(measure.CPU())(tb) - cpu
	check(tb, err)
	check(tb, o.generator.next(&m))
	if m.Error != "" {
		tb.Fatalf("the generator: %s", m.Error)
	}
	return w, m
}

// report sets the counts, of which all submits must have one.
func (c counts) report(f figures) {
	f.Helper()
	for unit, n := range map[string]int{
		"sent":       c.Sent,
		"unsent":     c.Unsent,
		"accepted":   c.Accepted,
		"refused":    c.Refused,
		"timed-out":  c.TimedOut,
		"failed":     c.Failed,
		"unresolved": c.Unresolved,
	} {
		f.is(unit, float64(n))
	}
	f.is("submit-p50-ms", c.SubmitP50Ms)
	f.is("submit-p99-ms", c.SubmitP99Ms)
	f.is("p50-ms", c.P50Ms)
	f.is("p99-ms", c.P99Ms)
	if all := c.Accepted + c.Refused + c.TimedOut + c.Failed; all != c.Sent {
		f.Errorf("%d submits were sent, and %d have a result: %+v", c.Sent, all, c)
	}
}

func TestOverload_CountsEverySubmit(t *testing.T) { // not beside others: it takes processors from this process
	f := overload(t, 8, 300*time.Millisecond, 500*time.Millisecond)
	f.wantPositive("peak-task/s", "offered/s", "sent", "accepted", "submit-p50-ms", "p50-ms", "node-cpu",
		"generator-cpu")
	if _, ok := f.by["goodput"]; !ok { // how many attempts end in half a second is up to the machine
		t.Error("goodput is missing")
	}
	apart := f.by["node-processors"] > 0 && f.by["generator-processors"] > 0
	if apart != (runtime.GOOS == "linux" && runtime.NumCPU() > 1) {
		t.Errorf("node and generator have processors of their own: %v", apart)
	}
	if f.by["sessions-lost"] == 0 && f.by["failed"] > 0 { // only a machine that stood still for its TTL ends a session
		t.Errorf("%v", f.by)
	}
}
