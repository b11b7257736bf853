package check_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// pass lets time go by.
func (b *builder) pass(d time.Duration) {
	b.clock += int64(d)
	b.now = b.now.Add(d)
}

// settled tells how many slots both nodes have, and when they came: long ago.
func (b *builder) settled(slots int) {
	for i := range b.run.Keys {
		if k := &b.run.Keys[i]; k.Node != "" {
			k.At, k.Slots, k.Behaviors = 1, slots, "sleep work"
		}
	}
	b.pass(10 * time.Second)
}

// waiting submits a task that waits for a while until it runs.
func (b *builder) waiting(id string, d time.Duration) {
	b.submit(id)
	b.pass(d)
	b.start(id, "n-1")
	b.succeed(id)
}

var idleness = []planted{
	{"a ready task waits beside a free slot", "14 idle", func(b *builder) {
		b.settled(1)
		b.waiting("a", 2*time.Second)
	}, wallEnds},
	{"a ready task waits for ever", "14 idle", func(b *builder) {
		b.settled(1)
		b.submit("a")
		b.pass(2 * time.Second)
	}, wallEnds},
	{"a ready task waits while another node is idle", "14 idle", func(b *builder) {
		b.settled(1)
		b.submit("b")
		b.start("b", "n-1")
		b.submit("a")
		b.pass(2 * time.Second)
		b.succeed("b")
		b.start("a", "n-1")
		b.succeed("a")
	}, wallEnds},
	{"a task that is tried again waits beside a free slot", "14 idle", func(b *builder) {
		b.settled(1)
		b.submit("a")
		b.start("a", "n-1")
		b.fail("a", b.now+500)
		b.pass(2 * time.Second)
		b.start("a", "n-1")
		b.succeed("a")
	}, wallEnds},
	{"a task waits beside a free slot of a limited behavior", "14 idle", func(b *builder) {
		b.settled(3)
		b.run.Info.Limits = map[string]int{"work": 2}
		b.submit("b")
		b.start("b", "n-1")
		b.waiting("a", 3*time.Second)
		b.succeed("b")
	}, wallEnds},
	{"a task waits while the bus has been away for long", "14 idle", func(b *builder) {
		b.settled(1)
		b.run.Faults = append(b.run.Faults, history.Fault{Kind: history.BusAwayKind, From: b.tick(), Until: b.clock + int64(time.Minute), Proof: "lost"})
		b.pass(10 * time.Second)
		b.waiting("a", 3*time.Second)
		b.pass(time.Minute)
	}, wallEnds},
	{"a task waits while one node has been without a bus for long", "14 idle", func(b *builder) {
		b.settled(1)
		b.run.Faults = append(b.run.Faults, history.Fault{Kind: history.BusAwayFromOneKind, From: b.tick(), Until: b.clock + int64(time.Minute), Proof: "lost"})
		b.pass(10 * time.Second)
		b.waiting("a", 3*time.Second)
		b.pass(time.Minute)
	}, wallEnds},
	{"a task waits while nobody asks for anything", "14 idle", func(b *builder) {
		b.settled(1)
		b.run.Faults = append(b.run.Faults, history.Fault{Kind: history.QuietKind, From: b.tick(), Until: b.clock + int64(time.Minute), Proof: "nobody"})
		b.waiting("a", 3*time.Second)
		b.pass(time.Minute)
	}, wallEnds},
	{"a task waits long after a fault", "14 idle", func(b *builder) {
		b.settled(1)
		b.run.Faults = append(b.run.Faults, history.Fault{Kind: "pause", From: b.tick(), Until: b.tick(), Proof: "stood still"})
		b.waiting("a", 7*time.Second)
	}, wallEnds},
}

// A wait that has a reason is none of the engine's.
func TestAll_AllowsATaskToWait(t *testing.T) {
	for name, plant := range map[string]func(b *builder){
		"shortly": func(b *builder) {
			b.settled(1)
			b.waiting("a", 900*time.Millisecond)
		},
		"for its time": func(b *builder) {
			b.settled(1)
			o := b.op(history.Operation{Verb: history.Submit, Task: "a", Options: history.Options{Delay: int64(3 * time.Second)}}, func() {
				c := b.created()
				c.NotBefore = b.now.Add(3 * time.Second)
				b.add("a", c)
			})
			b.pass(time.Duration(o.Delay))
			b.start("a", "n-1")
			b.succeed("a")
		},
		"while every slot is taken": func(b *builder) {
			b.settled(2)
			for i, id := range []string{"b", "c", "d", "e"} {
				b.submit(id)
				b.start(id, []string{"n-1", "n-2"}[i%2])
			}
			b.waiting("a", 3*time.Second)
			for _, id := range []string{"b", "c", "d", "e"} {
				b.succeed(id)
			}
		},
		"while slots are taken by turns": func(b *builder) {
			b.settled(1)
			b.submit("a")
			for _, id := range []string{"b", "c", "d", "e"} {
				b.submit(id)
				b.start(id, "n-1")
				b.submit(id + "2")
				b.start(id+"2", "n-2")
				b.pass(900 * time.Millisecond)
				b.succeed(id)
				b.succeed(id + "2")
				b.pass(50 * time.Millisecond)
			}
			b.start("a", "n-1")
			b.succeed("a")
		},
		"while a call that was given up goes on": func(b *builder) {
			b.settled(1)
			b.submit("b")
			b.start("b", "n-1")
			b.submit("c")
			b.start("c", "n-2")
			b.submit("a")
			b.op(history.Operation{Verb: history.Cancel, Task: "b"}, func() { b.add("b", &events.CancelRequested{}) })
			b.add("b", b.failed("b", events.CodeCancelled, 0))
			b.pass(3 * time.Second)
			b.returns("b", "")
			b.start("a", "n-1")
			b.succeed("a")
			b.succeed("c")
		},
		"suspended": func(b *builder) {
			b.settled(1)
			b.submit("a")
			b.command(history.Suspend, "a", &events.Suspended{})
			b.pass(3 * time.Second)
			b.command(history.Resume, "a", &events.Resumed{})
			b.start("a", "n-1")
			b.succeed("a")
		},
		"near a fault": func(b *builder) {
			b.settled(1)
			b.run.Faults = append(b.run.Faults, history.Fault{Kind: "pause", From: b.tick(), Until: b.tick(), Proof: "stood still"})
			b.waiting("a", 3*time.Second)
		},
		"for a node that comes": func(b *builder) {
			b.settled(1)
			for i := range b.run.Keys {
				if k := &b.run.Keys[i]; k.Node != "" {
					k.At = b.clock
				}
			}
			b.waiting("a", 3*time.Second)
		},
		"beside a node that leaves": func(b *builder) {
			b.settled(1)
			b.run.Keys = append(b.run.Keys,
				history.KeyChange{Revision: b.rev, At: b.clock, Node: "n-1", Slots: 1, Behaviors: "work", Draining: true},
				history.KeyChange{Revision: b.rev, At: b.clock, Node: "n-2", Slots: 1, Behaviors: "work", Draining: true})
			b.waiting("a", 3*time.Second)
		},
		"for the limit of its behavior": func(b *builder) {
			b.settled(3)
			b.run.Info.Limits = map[string]int{"work": 1, "sleep": 2}
			b.submit("b")
			b.start("b", "n-1")
			b.submit("c")
			b.start("c", "n-2")
			b.submit("a")
			b.pass(3 * time.Second)
			b.succeed("b")
			b.start("a", "n-1")
			b.succeed("a")
			b.succeed("c")
		},
		"near the beginning of minutes without a bus": func(b *builder) {
			b.settled(1)
			b.run.Faults = append(b.run.Faults, history.Fault{Kind: history.BusAwayKind, From: b.tick(), Until: b.clock + int64(time.Minute), Proof: "lost"})
			b.waiting("a", 3*time.Second)
			b.pass(time.Minute)
		},
		"for a behavior that nobody runs": func(b *builder) {
			b.settled(1)
			for i := range b.run.Keys {
				b.run.Keys[i].Behaviors = "sleep"
			}
			b.waiting("a", 3*time.Second)
		},
		"as nobody knows the slots": func(b *builder) {
			b.pass(10 * time.Second)
			b.waiting("a", 3*time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			plant(b)
			r := b.finish()
			wallEnds(r)
			for _, v := range check.All(r) {
				t.Errorf("found %s", v)
			}
		})
	}
}

// Sessions that end although their nodes live tell that the machine gave them too little: then what is late proves nothing.
func TestJudge_RejectsWhatIsLateWhereTheMachineStarvedNodes(t *testing.T) {
	gone := func(b *builder) { b.key(history.KeyChange{Node: "n-2", At: b.tick(), Deleted: true}) }
	killed := func(b *builder, session string) {
		b.run.Faults = append(b.run.Faults, history.Fault{
			Kind:   history.KillKind,
			Target: "node " + session,
			From:   b.tick(),
			Until:  b.tick(),
			Proof:  "it has ended",
		})
	}
	for name, test := range map[string]struct {
		plant   func(b *builder)
		kind    string
		rejects bool
	}{
		"no fault was near":        {gone, "real", true},
		"another node was killed":  {func(b *builder) { killed(b, "n-3"); gone(b) }, "real", true},
		"its node was killed":      {func(b *builder) { killed(b, "n-2"); gone(b) }, "real", false},
		"it is there":              {func(*builder) {}, "real", false},
		"its session is simulated": {gone, "simulated", false},
		"its node was leaving": {func(b *builder) {
			b.key(history.KeyChange{Node: "n-2", At: b.tick(), Slots: 1, Behaviors: "work", Draining: true})
			gone(b)
		}, "real", false},
		"another fault was near": {func(b *builder) {
			b.run.Faults = append(b.run.Faults, history.Fault{Kind: "etcd-full", From: b.tick(), Until: b.tick(), Proof: "full"})
			gone(b)
		}, "real", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			b.run.Info.Kind = test.kind
			b.settled(1)
			test.plant(b)
			b.pass(20 * time.Second)
			b.waiting("a", 6*time.Second)
			r := b.finish()
			wallEnds(r)
			j := check.Judge(r)
			told := slices.ContainsFunc(j.Problems, func(p string) bool { return strings.Contains(p, "sessions ended: n-2; ") })
			late := slices.ContainsFunc(j.Violations, func(v check.Violation) bool { return v.Invariant == "14 idle" })
			if told != test.rejects || late == test.rejects {
				t.Errorf("violations %v, problems %q; want the run rejected: %t", j.Violations, j.Problems, test.rejects)
			}
			if want := map[bool]string{true: check.Rejected, false: check.Violated}[test.rejects]; j.Verdict() != want {
				t.Errorf("verdict %s, want %s", j.Verdict(), want)
			}
		})
	}
}
