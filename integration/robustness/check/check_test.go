package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// everything is a run in which everything happens that may.
func everything(t testing.TB) *builder {
	b := newBuilder(t)
	b.op(history.Operation{Verb: history.Get, Task: "a", Answer: history.Absent}, nil)
	b.done("a")
	b.tell(history.Wait, "a", "=1")
	b.tell(history.Get, "a", "")
	b.join2("a", false)
	b.join2("a", true, &events.Rescheduled{At: b.now})
	b.tell(history.Get, "a", "")
	b.start("a", "n-2")
	b.fail("a", b.now+5)
	b.now += 5
	b.start("a", "n-2")
	b.fail("a", 0)
	b.tell(history.Wait, "a", "!no")
	b.command(history.Retry, "a", &events.Rescheduled{At: b.now + 1})
	b.start("a", "n-2")
	b.succeed("a")
	b.tell(history.Wait, "a", "=1")
	b.command(history.Delete, "a", &events.Deleted{})
	b.tell(history.Get, "a", "")
	b.op(history.Operation{Verb: history.Cancel, Task: "a", Answer: history.Absent}, nil)
	b.op(history.Operation{Verb: history.Wait, Task: "a", Answer: history.Absent}, nil)
	b.done("a")

	b.submit("cancelled")
	b.start("cancelled", "n-1")
	b.command(history.Cancel, "cancelled", &events.CancelRequested{})
	b.command(history.Cancel, "cancelled")
	b.returns("cancelled", "")
	b.add("cancelled", b.failed("cancelled", events.CodeCancelled, 0))
	b.op(history.Operation{Verb: history.Cancel, Task: "cancelled", Answer: history.Refused}, nil)
	b.submit("early")
	b.command(history.Cancel, "early", b.failed("early", events.CodeCancelled, 0))
	b.tell(history.Wait, "early", "!cancelled")

	b.submit("repeated")
	b.start("repeated", "n-1")
	b.succeedNext("repeated", b.now+3)
	b.tell(history.Get, "repeated", "")
	b.now += 3
	b.start("repeated", "n-1")
	b.succeedNext("repeated", b.now+20_000)
	b.command(history.RunNow, "repeated", &events.Rescheduled{At: b.now + 1})
	b.start("repeated", "n-1")
	b.succeedNext("repeated", b.now+1_000)
	b.command(history.Cancel, "repeated", &events.Rescheduled{})
	b.tell(history.Wait, "repeated", "!cancelled")
	b.joins("repeated", "late", 0, &events.Joined{})
	b.tell(history.Wait, "repeated", "=1").Request = "late" // of the last run that there was

	b.repeated("every")
	b.succeedNext("every", (b.now + 2).Add(every))
	b.now = b.track("every").due
	b.start("every", "n-1")
	b.fails("every", every)
	b.start("every", "n-1").Wait = int64(time.Second) // it chooses
	b.succeedNext("every", (b.now + 2).Add(time.Second))
	b.now = b.track("every").due
	b.join("n-4")
	b.start("every", "n-4")
	b.leave("n-4")
	b.add("every", &events.Lost{Until: b.now + 1}, b.followed("every", events.CodeLost, every))
	b.tell(history.Get, "every", "")
	b.command(history.Cancel, "every", &events.Rescheduled{})
	b.tell(history.Wait, "every", "!lost")

	b.submit("merged")
	b.start("merged", "n-1")
	b.join2("merged", false, &events.Merged{Params: events.JSON([]byte("2"))})
	b.returns("merged", "=1")
	b.add("merged", &events.Succeeded{Result: events.JSON([]byte("1")), Run: 1}, &events.Rescheduled{At: b.now + 1})
	b.start("merged", "n-2")
	b.succeed("merged")

	b.submit("suspended")
	b.command(history.Suspend, "suspended", &events.Suspended{})
	b.command(history.Suspend, "suspended")
	b.command(history.Resume, "suspended", &events.Resumed{})
	b.command(history.Suspend, "suspended", &events.Suspended{})
	b.submit("snoozed")
	b.start("snoozed", "n-1")
	b.returns("snoozed", "")
	b.add("snoozed", &events.Snoozed{Until: b.now + 1})
	b.start("snoozed", "n-1")
	b.returns("snoozed", "")
	b.add("snoozed", &events.Released{Until: b.now + 1})
	b.start("snoozed", "n-1")
	b.succeed("snoozed")
	b.op(history.Operation{Verb: history.Submit, Task: "unknown", Answer: history.Unknown}, func() { b.add("unknown", b.created()) })
	b.op(history.Operation{Verb: history.Delete, Task: "unknown", Answer: history.Unknown}, nil)

	b.lostTwice()
	b.pause()
	b.submit("asleep")
	return b
}

// lostTwice is a task whose nodes die; its second function never notices.
func (b *builder) lostTwice() {
	b.submit("lost")
	b.start("lost", "n-1")
	b.leave("n-1")
	b.own("n-2")
	b.join("n-3")
	b.add("lost", &events.Lost{Until: b.now + 1})
	b.now += 6
	b.start("lost", "n-3")
	zombie := b.run.Executions[b.track("lost").execution]
	b.leave("n-3")
	b.add("lost", &events.Lost{Until: b.now + 6}, b.failed("lost", events.CodeLost, 0))
	b.command(history.Retry, "lost", &events.Rescheduled{At: b.now + 1})
	b.start("lost", "n-2")
	b.succeed("lost")
	for i := range b.run.Executions {
		if b.run.Executions[i].Token == zombie.Token {
			b.run.Executions[i].End, b.run.Executions[i].Outcome = b.tick(), "=1"
		}
	}
}

// pause keeps the tasks of a behavior from running.
func (b *builder) pause() {
	b.set(events.Settings.Shard(shards), &events.Paused{Behavior: "work", Reason: "a deployment"})
}

func TestAll_FindsNothingInARunThatIsRight(t *testing.T) {
	run := everything(t).finish()
	for _, v := range check.All(run) {
		t.Error(v)
	}
	if seen := check.Judge(run).Seen; seen[check.Repeated] != 4 || seen[check.Lost] != 1 {
		t.Errorf("seen %+v, want 4 runs followed by others, one of them lost", seen)
	}
	dir := t.TempDir()
	if err := history.Save(dir, run); err != nil {
		t.Fatal(err)
	}
	again, err := history.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if found := check.All(again); len(found) > 0 {
		t.Errorf("of the run that was kept: %v", found)
	}
}

// Retention makes room for a further life of a finished task, by age and by number.
// A submit whose caller gave up may be decided after the journals were read. An effect that an entry among them had to
// record, or of before that time, is none of these.
func TestAll_KnowsNothingOfWhatFollowsTheJournals(t *testing.T) {
	for _, row := range []struct {
		after, beyond bool
		want          int
	}{{true, true, 0}, {true, false, 1}, {false, true, 1}} {
		b := newBuilder(t)
		b.done("a")
		run := b.finish()
		run.Info.Read = run.Info.End
		late := run.Executions[0]
		late.Token.Ref = events.RefOf(late.Token.Ref.Entry(), 9)
		if row.beyond {
			late.Token.Ref = events.RefOf(99, 0)
		}
		late.Begin, late.End, late.Outcome = run.Info.End-1, 0, ""
		if row.after {
			late.Begin = run.Info.End + 1
		}
		run.Executions = append(run.Executions, late)
		if got := check.All(run); len(got) != row.want {
			t.Errorf("after the end %t, beyond the journals %t: %v, want %d violations", row.after, row.beyond, got, row.want)
		}
	}
}

func TestAll_ForgetsFinishedTasks(t *testing.T) {
	for name, change := range map[string]func(p *events.Policy){
		"age":    func(p *events.Policy) { p.Retain = 2 * time.Millisecond },
		"number": func(p *events.Policy) { p.RetainCount = 1 },
	} {
		b := newBuilder(t)
		done := func(id string) {
			c := b.created()
			change(&c.Policy)
			b.op(history.Operation{Verb: history.Submit, Task: id}, func() { b.add(id, c) })
			b.start(id, "n-1")
			b.succeed(id)
		}
		done("x/a")
		done("x/b")
		b.add("x/c", b.created())
		b.op(history.Operation{Verb: history.Submit, Task: "x/c", Answer: history.Unknown}, nil)
		b.tasks["x/a"] = nil
		b.op(history.Operation{Verb: history.Get, Task: "x/a", Answer: history.Absent}, nil)
		done("x/a")
		b.now += 5
		b.add("x/d", b.created())
		b.op(history.Operation{Verb: history.Submit, Task: "x/d", Answer: history.Unknown}, nil)
		for _, id := range []string{"x/a", "x/b"} { // the last one of a count stays
			if name == "age" || id == "x/b" {
				delete(b.tasks, id)
			}
		}
		for _, v := range check.All(b.finish()) {
			t.Errorf("%s: %s", name, v)
		}
	}
}

// Attempts of another worker on the same bucket may have failed, too.
func TestAll_LetsAnOwnerEndAWorkThoughItsAttemptAskedForAnother(t *testing.T) {
	for _, code := range []string{events.CodeItems, "no"} {
		b := newBuilder(t)
		b.started()
		b.add("a", &events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{
			{ID: "all", Buckets: 1, Workers: 1, Threads: 1},
		}})
		b.returns("a", "!"+code).Final = false
		b.add("a", b.failed("a", code, 0))
		found := check.All(b.finish())
		if accused := code == "no"; accused != (len(found) == 1) || len(found) > 1 {
			t.Errorf("%s: %v", code, found)
		}
	}
}

// A task that a request has made is held for ten minutes, whatever the policy says, and makes way for none that ends meanwhile.
func TestAll_HoldsWhatARequestMade(t *testing.T) {
	b := newBuilder(t)
	b.requested("x/a", "key#1")
	b.requested("x/b", "")
	b.tell(history.Get, "x/a", "")
	pass := func(minutes int) { // a minute counts of each gap between entries
		for range minutes {
			b.now += events.Millis(time.Minute / time.Millisecond)
			b.submit("x/passing")
			b.command(history.Delete, "x/passing", &events.Deleted{})
			delete(b.tasks, "x/passing")
		}
	}
	pass(8)
	b.requested("x/c", "")
	delete(b.tasks, "x/b")
	b.tell(history.Get, "x/a", "")
	pass(3)
	b.requested("x/d", "")
	delete(b.tasks, "x/a")
	delete(b.tasks, "x/c")
	b.requested("x/a", "key#2")
	b.asked("keyed", "k", "1")
	b.repeats("keyed", "k", "1")
	b.op(history.Operation{Verb: history.Submit, Task: "keyed", By: "ada work", Request: "k", Body: "2", Answer: history.Refused}, nil)
	b.sound()
}

func TestViolation_IsOneLine(t *testing.T) {
	got := check.Violation{Invariant: "2 legal", Task: "a", Shard: 1, Entry: 7, Text: "no"}.String()
	if want := "2 legal: shard 1, entry 7, task a: no"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// busy is a run of about 200 tasks and 500 operations.
func busy(t testing.TB) *history.Run {
	b := newBuilder(t)
	for i := range 200 {
		id := fmt.Sprint("t-", i)
		b.done(id)
		b.tell(history.Wait, id, "=1")
		if i%2 == 0 {
			b.tell(history.Get, id, "")
		}
	}
	return b.finish()
}

func BenchmarkAll(b *testing.B) {
	run := busy(b)
	for b.Loop() {
		if found := check.All(run); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

// A node that learns late of an attempt is told the failures that count then: none, once a bucket of the work has ended.
func TestAll_LetsAWorkerBeTheFirstTryOnlyIfABucketHasEndedSinceItStarted(t *testing.T) {
	for _, c := range []struct {
		ends bool
		try  uint32
		good bool
	}{{true, 1, true}, {true, 2, true}, {false, 1, false}, {false, 2, true}} {
		b := newBuilder(t)
		b.started()
		b.add("a", &events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{
			{ID: "all", Buckets: 3, Workers: 2, Threads: 1},
		}})
		b.add("a", &events.PartitionStarted{Partition: 1})
		moved := func(id string, of events.BucketsMoved) {
			of.Worker, of.Attempt = events.WorkerNumber("a", events.TaskID(id)), b.track(id).started
			b.add("a", &of)
		}
		moved("a", events.BucketsMoved{Started: 1})
		worker := string(events.WorkerID("a", 2))
		made := b.created()
		made.Params, made.Ties = events.JSON([]byte(`{"worker_of":"a"}`)), events.Ties{Parent: "a", Group: "a", By: "ada"}
		b.add(worker, made)
		b.start(worker, "n-1")
		moved(worker, events.BucketsMoved{Started: 2})
		b.fail(worker, b.now+10)
		moved(worker, events.BucketsMoved{Returned: 2, Cause: events.ReturnedFailed})
		b.now += 10
		x := b.start(worker, "n-1")
		if c.ends {
			moved("a", events.BucketsMoved{Ended: 1, Items: events.ItemCounts{Done: 1}, Started: 3})
		}
		x.Begin, x.Try = b.tick(), c.try
		accused := slices.ContainsFunc(check.All(b.finish()), func(v check.Violation) bool { // of more, which the test leaves undone
			return strings.Contains(v.String(), "was told to be try")
		})
		if accused == c.good {
			t.Errorf("%+v: accused %t", c, accused)
		}
	}
}
