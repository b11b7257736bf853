package check_test

import (
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// delayed submits a task that asks for a delay, and gets another one.
func (b *builder) delayed(asked, given time.Duration) {
	o := b.op(history.Operation{Verb: history.Submit, Task: "a"}, func() {
		c := b.created()
		c.NotBefore = b.now.Add(given)
		b.add("a", c)
	})
	o.Delay = int64(asked)
	b.now += events.Millis(given.Milliseconds())
	b.clock += int64(given)
	b.start("a", "n-1")
	b.succeed("a")
}

// wallEnds sets the clocks of the end to the last moment of the builder, so that times compare.
func wallEnds(r *history.Run) { r.Info.EndWall -= 10_000 }

// committed tells when each entry of a task was committed: entry n at n seconds.
func committed(r *history.Run) {
	journalOf(r, "a", func(all []history.Record) []history.Record {
		for i := range all {
			all[i].At = int64(i+1) * int64(time.Second)
		}
		return all
	})
}

// followed ends an attempt that asks for a wait, and is followed by another one after the wait that it is given.
func followed(asked, given time.Duration, end func(b *builder, id string, next events.Millis)) func(b *builder) {
	return func(b *builder) {
		b.submit("a")
		b.start("a", "n-1").Wait = int64(asked)
		next := (b.now + 2).Add(given) // returning and recording take a millisecond each
		end(b, "a", next)
		b.now = next
		b.start("a", "n-1")
		b.succeed("a")
	}
}

// lostAgain loses the second attempt of a task as well, which then waits until some milliseconds from now; 4 to 6 are
// legal.
func (b *builder) lostAgain(until events.Millis) {
	b.submit("a")
	for i, node := range []string{"m-1", "m-2"} {
		b.join(node)
		b.start("a", node)
		b.leave(node)
		b.add("a", &events.Lost{Until: b.now + 1 + events.Millis(i)*(until-1)})
	}
}

// killed makes n-1 run task a until it is killed, and n-2 again after a while; 0 = never.
func killed(after time.Duration) func(b *builder) {
	return func(b *builder) {
		b.submit("a")
		b.start("a", "n-1")
		b.run.Faults = append(b.run.Faults, history.Fault{Kind: history.KillKind, Target: "node1 n-1", From: b.tick(), Until: b.tick(), Proof: "gone"})
		b.leave("n-1")
		b.own("n-2")
		b.add("a", &events.Lost{Until: b.now + 1})
		b.now += 6
		if after == 0 {
			b.add("a", &events.Suspended{}) // nobody saw that anybody asked for it
			b.run.Operations = append(b.run.Operations, history.Operation{Verb: history.Suspend, Task: "a", Answer: history.Unknown})
			return
		}
		b.clock += int64(after)
		b.start("a", "n-2")
		b.succeed("a")
	}
}

var times = []planted{
	{"a delay is forgotten", "11 once", func(b *builder) { b.delayed(10*time.Second, time.Millisecond) }, wallEnds},
	{"a delay is too long", "8 ended", func(b *builder) { b.delayed(time.Second, time.Hour) }, wallEnds},
	{"a back-off is too long", "8 ended", func(b *builder) {
		b.submit("a")
		b.start("a", "n-1")
		next := b.now.Add(2 * time.Hour)
		b.fail("a", next)
		b.now = next
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"a retry comes before its wait is over", "11 once", followed(time.Second, 999*time.Millisecond, (*builder).fail), nil},
	{"a retry comes long after its wait", "8 ended", followed(time.Second, 3*time.Second, (*builder).fail), nil},
	{"a repetition comes before its wait is over", "11 once", followed(time.Second, 50*time.Millisecond, (*builder).succeedNext), nil},
	{"a repetition comes long after its wait", "8 ended", followed(time.Second, time.Hour, (*builder).succeedNext), nil},
	{"a success is followed too early by another run that the policy has", "11 once", func(b *builder) {
		b.repeated("a")
		b.succeedNext("a", (b.now + 2).Add(every-time.Millisecond))
		b.command(history.Cancel, "a", &events.Rescheduled{})
	}, nil},
	{"a failure is followed too late by another run that the policy has", "11 once", func(b *builder) {
		b.repeated("a")
		b.fails("a", every+time.Millisecond)
	}, nil},
	{"no other run follows, and the policy has one", "2 legal", func(b *builder) {
		b.repeated("a")
		b.succeed("a")
	}, nil},
	{"another run follows that somebody has cancelled", "2 legal", func(b *builder) {
		b.repeated("a")
		b.command(history.Cancel, "a", &events.CancelRequested{})
		b.returns("a", "")
		b.add("a", b.followed("a", events.CodeCancelled, every))
	}, nil},
	{"the first loss waits", "2 legal", func(b *builder) {
		b.submit("a")
		b.start("a", "n-2")
		b.leave("n-2")
		b.add("a", &events.Lost{Until: b.now + 2})
	}, nil},
	{"the wait after a second loss is too long", "2 legal", func(b *builder) { b.lostAgain(7) }, nil},
	{"the wait after a second loss is too short", "2 legal", func(b *builder) { b.lostAgain(2) }, nil},
	{"the wait after a release is too long", "2 legal", func(b *builder) {
		b.started()
		b.returns("a", "")
		b.add("a", &events.Released{Until: b.now + 2})
	}, nil},
	{"it ends too late after the faults", "8 ended", func(b *builder) {
		b.submit("a")
		b.now += 5000
		b.start("a", "n-1")
		b.succeed("a")
	}, func(r *history.Run) {
		wallEnds(r)
		r.Info.End += int64(6 * time.Second)
	}},
	{"it ends too late after the faults, by the clock of the run", "8 ended", func(b *builder) {
		b.done("a")
		b.run.Executions[0].Begin, b.run.Executions[0].End = int64(2*time.Second), int64(2*time.Second+1)
	}, committed},
	{"it runs again too late after a kill", "8 ended", killed(8 * time.Second), nil},
	{"a call begins before its attempt is committed", "10 effects", func(b *builder) {
		b.done("a")
		b.run.Info.BoundMs = 0
	}, committed},
	{"a read shows what was committed later", "linear", func(b *builder) {
		b.done("a")
		b.run.Executions[0].Begin, b.run.Executions[0].End = int64(2*time.Second), int64(4*time.Second)
		b.tell(history.Get, "a", "")
		b.run.Info.BoundMs = 0
		b.run.Operations[0].Return = int64(time.Hour)
	}, committed},
	{"a wait is told nothing", "9 futures", func(b *builder) {
		b.done("a")
		b.op(history.Operation{Verb: history.Wait, Task: "a", Answer: history.Untold}, nil)
	}, nil},
}

// What nobody promised is not held against anybody.
func TestAll_AllowsWhatHasAReason(t *testing.T) {
	for name, plant := range map[string]func(b *builder){
		"another fault is near the kill": func(b *builder) {
			killed(8 * time.Second)(b)
			b.run.Faults = append(b.run.Faults, history.Fault{Kind: "etcd-leader-kill", From: b.clock - int64(7*time.Second), Until: b.clock, Proof: "gone"})
		},
		"somebody suspended what a kill ended": func(b *builder) {
			killed(0)(b)
			delete(b.tasks, "a")
			b.run.Served = nil
		},
		"it runs again in time": killed(3 * time.Second),
		"a wait for what is suspended": func(b *builder) {
			b.submit("a")
			b.command(history.Suspend, "a", &events.Suspended{})
			b.op(history.Operation{Verb: history.Wait, Task: "a", Answer: history.Untold}, nil)
		},
		"a retry that waits as it asked to":      followed(time.Second, time.Second, (*builder).fail),
		"a repetition that waits as it asked to": followed(time.Second, time.Second, (*builder).succeedNext),
		"a clock was wrong": func(b *builder) {
			b.delayed(time.Second, time.Hour)
			b.run.Faults = append(b.run.Faults, history.Fault{Kind: "clock-step", Proof: "read"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			plant(b)
			for _, v := range check.All(b.finish()) {
				if v.Invariant != check.Served { // the builder does not show every task here
					t.Errorf("found %s", v)
				}
			}
		})
	}
}

// worthy is a run of real processes whose one fault met enough.
func worthy(t testing.TB) *history.Run {
	b := newBuilder(t)
	b.done("a")
	for range check.LeastAnswered {
		b.tell(history.Get, "a", "")
	}
	b.run.Info.Kind, b.run.Info.Planned = "real", []string{"kill"}
	b.run.Faults = []history.Fault{{Kind: "kill", Target: "node1", From: b.tick(), Until: b.tick(), Proof: "gone", Round: 1, InFlight: check.LeastInFlight}}
	return b.finish()
}

func TestWorthless_SaysWhyARunProvesNothing(t *testing.T) {
	for _, row := range []struct {
		problem string // "" = it proves something
		change  func(*history.Run)
	}{
		{"", func(*history.Run) {}},
		{"", func(r *history.Run) { r.Info.Kind, r.Faults = "simulated", nil }},
		{"no fault was in force", func(r *history.Run) { r.Faults, r.Info.Planned = nil, nil }},
		{"did not bite", func(r *history.Run) { r.Faults[0].Proof = "" }},
		{"never came", func(r *history.Run) { r.Info.Planned = append(r.Info.Planned, "pause") }},
		{"9 tasks in flight", func(r *history.Run) { r.Faults[0].InFlight-- }},
		{"before round 2", func(r *history.Run) {
			f := r.Faults[0]
			f.Round, f.From, f.Until = 2, f.Until+1, f.Until+2
			r.Faults = append(r.Faults, f)
		}},
		{"told so", func(r *history.Run) { r.Info.Problems = []string{"told so"} }},
	} {
		run := worthy(t)
		row.change(run)
		j := check.Judge(run)
		if len(j.Violations) != 0 {
			t.Errorf("%q: violations %v", row.problem, j.Violations)
		}
		if all := strings.Join(j.Problems, "; "); (all == "") != (row.problem == "") || !strings.Contains(all, row.problem) {
			t.Errorf("problems %q, want %q", all, row.problem)
		}
		if (j.Verdict() == check.Passed) != (row.problem == "") {
			t.Errorf("%q: %s", row.problem, j.Verdict())
		}
	}
}

// A run that was never read is judged by what the harness saw alone.
func TestJudge_OfARunThatWasNeverRead(t *testing.T) {
	run := &history.Run{Info: history.Info{Problems: []string{"etcd does not start"}}}
	if j := check.Judge(run); j.Verdict() != check.Rejected {
		t.Errorf("%+v", j)
	}
	run.Damage = []history.Finding{{Invariant: check.Ended, Text: "nothing is served"}}
	if j := check.Judge(run); len(j.Violations) != 1 || j.Violations[0].Invariant != check.Ended {
		t.Errorf("%+v", j)
	}
	if j := check.Judge(new(history.Run)); j.Verdict() != check.Violated {
		t.Errorf("a run without journals: %+v", j)
	}
}
