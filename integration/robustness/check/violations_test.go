package check_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// planted is one broken rule: what breaks it in the making, or in the finished run.
type planted struct {
	name      string
	invariant string
	plant     func(b *builder)
	after     func(r *history.Run)
}

// journalOf is the journal of a task's shard, as every member holds it.
func journalOf(r *history.Run, id string, change func(all []history.Record) []history.Record) {
	shard := events.TaskID(id).Shard(shards)
	for i := range r.Members {
		r.Members[i].Entries[shard] = change(r.Members[i].Entries[shard])
	}
}

// elsewhere returns the id of a task in another shard.
func elsewhere(id events.TaskID) events.TaskID {
	for i := 0; ; i++ {
		if other := events.TaskID(fmt.Sprint("other-", i)); other.Shard(shards) != id.Shard(shards) {
			return other
		}
	}
}

// started begins a run of task a.
func (b *builder) started() {
	b.submit("a")
	b.start("a", "n-1")
}

// overlap makes the first two calls of task a overlap by giving the first one a later end.
func (b *builder) overlap() {
	first := &b.run.Executions[0]
	first.End = b.run.Executions[1].Begin + 1
}

var aTask = func(b *builder) { b.done("a") }

var journals = []planted{
	{"an entry is missing", "1 entries", aTask, func(r *history.Run) {
		journalOf(r, "a", func(all []history.Record) []history.Record { return append(all[:1:1], all[2:]...) })
	}},
	{"the first entry is missing", "1 entries", aTask, func(r *history.Run) {
		journalOf(r, "a", func(all []history.Record) []history.Record { return all[1:] })
	}},
	{"an entry is there twice", "1 entries", aTask, func(r *history.Run) {
		journalOf(r, "a", func(all []history.Record) []history.Record { return append(all[:2:2], all[1:]...) })
	}},
	{"an entry was written twice", "1 entries", aTask, func(r *history.Run) {
		journalOf(r, "a", func(all []history.Record) []history.Record { all[1].Created--; return all })
	}},
	{"revisions run back", "1 entries", func(b *builder) {
		b.started()
		b.record = func(r *history.Record) { r.Revision, r.Created = 5, 5 }
		b.succeed("a")
	}, nil},
	{"a byte is damaged", "1 entries", aTask, func(r *history.Run) {
		journalOf(r, "a", func(all []history.Record) []history.Record {
			all[2].Data = bytes.Clone(all[2].Data)
			all[2].Data[60] ^= 1
			return all
		})
	}},
	{"an entry follows another one", "1 entries", func(b *builder) {
		b.started()
		b.change = func(e *events.Entry) { e.Prev[0] ^= 1 }
		b.succeed("a")
	}, nil},
	{"an entry is of another shard", "1 entries", func(b *builder) {
		b.change = func(e *events.Entry) { e.Shard ^= 1 }
		b.submit("a")
	}, nil},
	{"time runs back", "1 entries", func(b *builder) {
		b.started()
		b.change = func(e *events.Entry) { e.Time -= 1000 }
		b.succeed("a")
	}, nil},
	{"a member holds other bytes", "1 entries", aTask, func(r *history.Run) {
		shard := events.TaskID("a").Shard(shards)
		r.Members[1].Entries[shard][1].Data = r.Members[1].Entries[shard][0].Data
	}},
	{"a member lacks the last entry", "1 entries", aTask, func(r *history.Run) {
		shard := events.TaskID("a").Shard(shards)
		r.Members[1].Entries[shard] = r.Members[1].Entries[shard][:2]
	}},
	{"a member lacks a shard", "1 entries", aTask, func(r *history.Run) { r.Members[1].Entries = r.Members[1].Entries[:1] }},
	{"no member", "1 entries", func(*builder) {}, func(r *history.Run) { r.Members = nil }},
}

var transitions = []planted{
	{"a sequence is left out", "2 legal", func(b *builder) {
		b.submit("a")
		b.event = func(ev *events.Event) { ev.Seq++ }
		b.start("a", "n-1")
	}, nil},
	{"the predecessor is another", "2 legal", func(b *builder) {
		b.submit("a")
		b.event = func(ev *events.Event) { ev.Prev-- }
		b.start("a", "n-1")
	}, nil},
	{"deleted while running", "2 legal", func(b *builder) {
		b.started()
		b.command(history.Delete, "a", &events.Deleted{})
	}, nil},
	{"started before it was created", "2 legal", func(b *builder) { b.add("a", &events.Started{Node: "n-1", Attempt: 1}) }, nil},
	{"an event in another shard", "2 legal", func(b *builder) {
		b.event = func(ev *events.Event) { ev.Task = elsewhere("a") }
		b.add("a", b.created())
		delete(b.tasks, "a")
	}, nil},
	{"started while suspended", "2 legal", func(b *builder) {
		b.submit("a")
		b.command(history.Suspend, "a", &events.Suspended{})
		b.start("a", "n-1")
	}, nil},
	{"started on no node", "2 legal", func(b *builder) {
		b.submit("a")
		b.start("a", "")
	}, nil},
	{"a schedule is taken from what waits", "2 legal", func(b *builder) {
		b.submit("a")
		b.command(history.Cancel, "a", &events.Rescheduled{})
	}, nil},
	{"a cancelled task goes on", "2 legal", func(b *builder) {
		b.started()
		b.command(history.Cancel, "a", &events.CancelRequested{})
		b.succeedNext("a", b.now+50)
	}, nil},
	{"a second attempt beside the first", "4 attempts", func(b *builder) {
		b.started()
		b.start("a", "n-2")
	}, nil},
	{"an attempt is left out", "4 attempts", func(b *builder) {
		b.submit("a")
		b.add("a", &events.Started{Node: "n-1", Attempt: 2})
	}, nil},
	{"a second outcome", "5 outcomes", func(b *builder) {
		b.done("a")
		b.add("a", &events.Succeeded{Run: 2})
	}, nil},
	{"an outcome after a loss", "5 outcomes", func(b *builder) {
		b.started()
		b.leave("n-1")
		b.own("n-2")
		b.add("a", &events.Lost{Until: b.now + 1})
		b.add("a", &events.Succeeded{Run: 1})
	}, nil},
	{"a run ends twice", "5 outcomes", func(b *builder) {
		b.done("a")
		b.command(history.Retry, "a", &events.Rescheduled{At: b.now + 1})
		b.start("a", "n-1")
		b.returns("a", "=1")
		b.add("a", &events.Succeeded{Result: events.JSON([]byte("1")), Run: 1})
	}, nil},
	{"given up before it was lost too often", "5 outcomes", func(b *builder) {
		b.started()
		b.leave("n-1")
		b.own("n-2")
		b.add("a", &events.Lost{Until: b.now + 1}, b.failed("a", events.CodeLost, 0))
	}, nil},
	{"created twice", "11 once", func(b *builder) {
		b.submit("a")
		b.op(history.Operation{Verb: history.Submit, Task: "a"}, func() {
			b.event = func(ev *events.Event) { ev.Seq, ev.Prev = 1, 0 }
			b.add("a", b.created())
		})
	}, nil},
	{"tried more often than the policy allows", "11 once", func(b *builder) {
		b.submit("a")
		for range 3 {
			b.start("a", "n-1")
			b.fail("a", b.now+10)
			b.now += 10
		}
	}, nil},
	{"lost more often than the policy allows", "11 once", func(b *builder) {
		b.submit("a")
		for i := range 3 {
			node := fmt.Sprint("m-", i)
			b.join(node)
			b.now += 6
			b.start("a", node)
			b.leave(node)
			b.add("a", &events.Lost{Until: b.now + 1 + 5*min(events.Millis(i), 1)})
		}
	}, nil},
	{"started before the back-off is over", "11 once", func(b *builder) {
		b.started()
		b.fail("a", b.now+50)
		b.start("a", "n-1")
	}, nil},
	{"a request makes its task twice", "11 once", func(b *builder) {
		b.requested("x/a", "key#1")
		b.requested("x/b", "")
		delete(b.tasks, "x/a") // forgotten, as its policy says, and too early for its request
		b.op(history.Operation{Verb: history.Submit, Task: "x/a"}, func() { b.add("x/a", b.created()) })
	}, nil},
	{"a request whose retry was taken away makes its task twice", "11 once", func(b *builder) {
		c := b.created()
		c.Policy.RetainCount = 1
		b.op(history.Operation{Verb: history.Submit, Task: "x/a", Request: "key"}, func() {
			b.event = func(ev *events.Event) { ev.RequestID = "key#1" }
			b.add("x/a", c)
		})
		b.start("x/a", "n-1")
		b.fail("x/a", b.now+60)
		b.now = b.now.Add(time.Hour)
		b.command(history.Cancel, "x/a", &events.Rescheduled{})
		b.requested("x/b", "")
		delete(b.tasks, "x/a") // forgotten, as its policy says, and too early for its request
		b.op(history.Operation{Verb: history.Submit, Task: "x/a"}, func() { b.add("x/a", b.created()) })
	}, wallEnds},
	{"a request changes its task twice", "11 once", func(b *builder) {
		b.requested("x/a", "")
		for range 2 {
			b.event = func(ev *events.Event) { ev.RequestID = "key#1" }
			b.join2("x/a", true, &events.Rescheduled{At: b.now + 1})
		}
	}, nil},
	{"two requests of one key", "11 once", func(b *builder) {
		b.requested("x/a", "key#aaaaaaaaaaaaaaaa")
		b.event = func(ev *events.Event) { ev.RequestID = "key#bbbbbbbbbbbbbbbb" }
		b.join2("x/a", true, &events.Rescheduled{At: b.now + 1})
	}, nil},
	{"a request is for two tasks", "11 once", func(b *builder) {
		b.asked("a", "k", "1")
		b.asked("b", "k", "1")
	}, nil},
	{"a task is for two requests", "11 once", func(b *builder) {
		b.asked("a", "k", "1")
		*b.repeats("a", "k", "1") = history.Operation{Verb: history.Submit, Task: "a", Answer: history.Refused, By: "ada work", Request: "l", Call: b.tick(), Return: b.tick()}
	}, nil},
	{"a request that is repeated joins another one", "11 once", func(b *builder) {
		b.asked("a", "k", "1")
		b.repeats("a", "k", "1").Repeated = false
	}, nil},
	{"a request repeats one of another body", "11 once", func(b *builder) {
		b.asked("a", "k", "1")
		b.repeats("a", "k", "2")
	}, nil},
	{"a request repeats one that was not recorded", "7 acknowledged", func(b *builder) {
		o := b.submit("a")
		o.By, o.Request = "ada work", "k"
		b.repeats("a", "k", "")
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"a batch is decided twice", "11 once", func(b *builder) {
		b.submit("a")
		b.batch--
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
}

var fencing = []planted{
	{"written after the session's end", "6 fenced", func(b *builder) {
		b.started()
		b.leave("n-1")
		b.succeed("a")
	}, nil},
	{"written after the owner was replaced", "6 fenced", func(b *builder) {
		b.started()
		b.own("n-2")
		b.owner = "n-1"
		b.succeed("a")
	}, nil},
	{"written under an earlier ownership", "6 fenced", func(b *builder) {
		b.started()
		b.own("n-1")
		b.epochs = [shards]int64{13, 14}
		b.succeed("a")
	}, nil},
	{"written by nobody known", "6 fenced", func(b *builder) {
		b.change = func(e *events.Entry) { e.Owner = "n-9" }
		b.done("a")
	}, nil},
	{"lost while the session lives", "6 fenced", func(b *builder) {
		b.submit("a")
		b.start("a", "n-2")
		b.add("a", &events.Lost{Until: b.now + 1})
		b.now += 6
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"a session comes back", "6 fenced", func(b *builder) {
		b.leave("n-2")
		b.join("n-2")
	}, nil},
	{"an owner key is deleted", "6 fenced", func(b *builder) { b.key(history.KeyChange{Shard: 1, Deleted: true}) }, nil},
}

var serving = []planted{
	{"another status", "3 served", aTask, func(r *history.Run) { r.Served[0].Status = "FAILURE" }},
	{"another outcome", "3 served", aTask, func(r *history.Run) { r.Served[0].Outcome = "=2" }},
	{"another attempt", "3 served", aTask, func(r *history.Run) { r.Served[0].Attempt++ }},
	{"another run", "3 served", aTask, func(r *history.Run) { r.Served[0].Runs++ }},
	{"suspended", "3 served", aTask, func(r *history.Run) { r.Served[0].Whole, r.Served[0].Suspended = true, true }},
	{"due", "3 served", aTask, func(r *history.Run) { r.Served[0].Whole, r.Served[0].Due = true, 1 }},
	{"another number of failures", "3 served", aTask, func(r *history.Run) { r.Served[0].Whole, r.Served[0].Failures = true, 1 }},
	{"another number of losses", "3 served", aTask, func(r *history.Run) { r.Served[0].Whole, r.Served[0].Lost = true, 1 }},
	{"another creator", "3 served", aTask, func(r *history.Run) { r.Served[0].Whole, r.Served[0].Creator = true, "eve" }},
	{"another last node", "3 served", aTask, func(r *history.Run) { r.Served[0].Whole, r.Served[0].LastNode = true, "n-9" }},
	{"another cause to wait", "3 served", aTask, func(r *history.Run) { r.Served[0].Whole, r.Served[0].WaitCause = true, "Lost" }},
	{"waits since another time", "3 served", aTask, func(r *history.Run) { r.Served[0].Whole, r.Served[0].WaitSince = true, 1 }},
	{"suspended at another time", "3 served", aTask, func(r *history.Run) { r.Served[0].Whole, r.Served[0].SuspendedAt = true, 1 }},
	{"ahead of the journal", "3 served", aTask, func(r *history.Run) { r.Served[0].Seq++ }},
	{"behind what has ended", "3 served", aTask, func(r *history.Run) { r.Served[0].Seq-- }},
	{"not shown", "3 served", aTask, func(r *history.Run) { r.Served = nil }},
	{"shown twice", "3 served", aTask, func(r *history.Run) { r.Served = append(r.Served, r.Served[0]) }},
	{"never existed", "3 served", aTask, func(r *history.Run) {
		r.Served = append(r.Served, history.Served{Task: "b", Status: "CREATED", Seq: 1})
	}},
	{"deleted and still shown", "3 served", func(b *builder) {
		b.done("a")
		b.command(history.Delete, "a", &events.Deleted{})
		b.run.Served = []history.Served{{Task: "a", Status: "SUCCESS", Seq: 3, Attempt: 1, Runs: 1, Outcome: "=1"}}
	}, nil},
}

var remaining = []planted{
	{"a lease", "13 clean", aTask, func(r *history.Run) { r.Remains.Leases = 1 }},
	{"a key", "13 clean", aTask, func(r *history.Run) { r.Remains.Keys = []string{"mailbox/1"} }},
	{"nobody looked", "13 clean", aTask, func(r *history.Run) { r.Remains.Checked = false }},
	{"damage that the harness saw", "8 ended", aTask, func(r *history.Run) {
		r.Damage = []history.Finding{{Invariant: check.Ended, Text: "a node does not come back"}}
	}},
	{"a goroutine", "13 clean", aTask, func(r *history.Run) { r.Remains.Others = []string{"a goroutine"} }},
}

// Every rule is broken once, and exactly the checker that it belongs to says so.
func TestAll_FindsWhatIsPlanted(t *testing.T) {
	for _, rows := range [][]planted{times, idleness, journals, transitions, fencing, serving, commands, progress, told, executions, orders, remaining, callers, terms, settings, lists, schedules} {
		for _, row := range rows {
			t.Run(row.invariant+"/"+row.name, func(t *testing.T) {
				b := newBuilder(t)
				row.plant(b)
				run := b.finish()
				if row.after != nil {
					row.after(run)
				}
				found := check.All(run)
				if len(found) == 0 {
					t.Error("nothing was found")
				}
				for _, v := range found {
					if v.Invariant != row.invariant {
						t.Errorf("found %s", v)
					}
				}
			})
		}
	}
}

// A search that takes too long is no verdict.
func TestAll_SaysWhatItCouldNotJudge(t *testing.T) {
	b := newBuilder(t)
	b.done("a")
	b.tell(history.Wait, "a", "=1")
	for client := range 40 { // any of these may come before any other, and none where the last one fits
		o := b.join2("a", false)
		o.Client, o.Call, o.Return = 10+client, b.clock, b.clock+int64(time.Hour)
	}
	late := b.join2("a", true)
	late.Return += int64(time.Hour)
	j := check.JudgeWithin(b.finish(), 50*time.Millisecond)
	if j.Verdict() != check.Rejected || len(j.Problems) != 1 || !strings.Contains(j.Problems[0], "not judged") {
		t.Errorf("%+v, want that it could not be judged", j)
	}
}

// Many who wait for the same outcome are no reason to look for long.
func TestAll_JudgesManyWaitsAtOnce(t *testing.T) {
	b := newBuilder(t)
	b.started()
	for client := range 100 {
		b.run.Operations = append(b.run.Operations, history.Operation{Client: 10 + client, Verb: history.Wait, Task: "a",
			Call: b.clock, Return: b.clock + int64(time.Hour), Answer: history.OK, Outcome: "=1"})
	}
	b.tell(history.Get, "a", "")
	b.succeed("a")
	if j := check.JudgeWithin(b.finish(), time.Second); j.Verdict() != check.Passed {
		t.Errorf("%+v", j)
	}
}
