package check_test

import (
	"taskledger/events"
	"taskledger/integration/robustness/history"
)

var commands = []planted{
	{"a submit is lost", "7 acknowledged", func(b *builder) { b.op(history.Operation{Verb: history.Submit, Task: "a"}, nil) }, nil},
	{"a joined submit is lost", "7 acknowledged", func(b *builder) { b.join2("a", false) }, nil},
	{"a task from nowhere", "7 acknowledged", func(b *builder) { b.add("a", b.created()) }, nil},
	{"a task of a refused submit", "7 acknowledged", func(b *builder) {
		b.op(history.Operation{Verb: history.Submit, Task: "a", Answer: history.Refused}, func() { b.add("a", b.created()) })
	}, nil},
	{"a delete is lost", "7 acknowledged", func(b *builder) {
		b.done("a")
		b.command(history.Delete, "a")
	}, nil},
	{"a delete from nowhere", "7 acknowledged", func(b *builder) {
		b.done("a")
		b.add("a", &events.Deleted{})
	}, nil},
	{"a cancel is lost", "7 acknowledged", func(b *builder) {
		b.started()
		b.command(history.Cancel, "a")
		b.succeed("a")
	}, nil},
	{"a cancel from nowhere", "7 acknowledged", func(b *builder) {
		b.submit("a")
		b.add("a", b.failed("a", events.CodeCancelled, 0))
	}, nil},
	{"a cancel of a running task from nowhere", "7 acknowledged", func(b *builder) {
		b.started()
		b.add("a", &events.CancelRequested{})
		b.succeed("a")
	}, nil},
	{"a cancel of a repetition from nowhere", "7 acknowledged", func(b *builder) {
		b.started()
		b.succeedNext("a", b.now+50)
		b.add("a", &events.Rescheduled{})
	}, nil},
	{"a suspend is lost", "7 acknowledged", func(b *builder) {
		b.submit("a")
		b.command(history.Suspend, "a")
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"a suspend from nowhere", "7 acknowledged", func(b *builder) {
		b.submit("a")
		b.add("a", &events.Suspended{})
	}, nil},
	{"a second suspend is lost", "7 acknowledged", func(b *builder) {
		b.submit("a")
		b.command(history.Suspend, "a", &events.Suspended{})
		b.command(history.Resume, "a", &events.Resumed{})
		b.command(history.Suspend, "a")
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"a resume is lost", "7 acknowledged", func(b *builder) {
		b.submit("a")
		b.command(history.Suspend, "a", &events.Suspended{})
		b.command(history.Resume, "a")
	}, nil},
	{"a resume from nowhere", "7 acknowledged", func(b *builder) {
		b.submit("a")
		b.op(history.Operation{Verb: history.Suspend, Task: "a", Answer: history.Unknown}, func() { b.add("a", &events.Suspended{}) })
		b.add("a", &events.Resumed{})
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"a retry is lost", "7 acknowledged", func(b *builder) {
		b.done("a")
		b.command(history.Retry, "a")
	}, nil},
	{"runs again from nowhere", "7 acknowledged", func(b *builder) {
		b.done("a")
		for range 2 { // the submit could be the cause of one
			b.add("a", &events.Rescheduled{At: b.now + 1})
			b.start("a", "n-1")
			b.succeed("a")
		}
	}, nil},
	{"a run-now is lost", "7 acknowledged", func(b *builder) {
		c := b.created()
		c.NotBefore += 1_000_000
		b.op(history.Operation{Verb: history.Submit, Task: "a", Options: history.Options{Delay: 1_000_000_000_000}}, func() { b.add("a", c) })
		b.command(history.RunNow, "a")
	}, wallEnds},
	{"merged from nowhere", "7 acknowledged", func(b *builder) {
		b.submit("a")
		b.add("a", &events.Merged{})
		b.add("a", &events.Merged{})
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
}

var progress = []planted{
	{"never started", "8 ended", func(b *builder) { b.submit("a") }, nil},
	{"runs for ever", "8 ended", func(b *builder) { b.started() }, nil},
	{"lost and forgotten", "8 ended", func(b *builder) {
		b.started()
		b.leave("n-1")
		b.own("n-2")
		b.add("a", &events.Lost{Until: b.now + 1})
	}, nil},
	{"a retry is due and forgotten", "8 ended", func(b *builder) {
		b.started()
		b.fail("a", b.now+5)
	}, nil},
	{"a repetition is due and forgotten", "8 ended", func(b *builder) {
		b.started()
		b.succeedNext("a", b.now+5)
	}, nil},
	{"run again by hand and forgotten", "8 ended", func(b *builder) {
		b.done("a")
		b.command(history.Retry, "a", &events.Rescheduled{At: b.now + 1})
	}, nil},
}

var told = []planted{
	{"a wait learns what no run ended with", "9 futures", func(b *builder) {
		b.done("a")
		b.tell(history.Wait, "a", "=2")
	}, nil},
	{"a request that made a task learns of a later run", "9 futures", func(b *builder) {
		b.asked("a", "k", "once")
		b.command(history.Retry, "a", &events.Rescheduled{At: b.now + 1})
		b.start("a", "n-1")
		b.returns("a", "=2")
		b.add("a", &events.Succeeded{Result: events.JSON([]byte("2")), Run: 2})
		b.repeats("a", "k", "once")
		b.tell(history.Wait, "a", "=2").Request = "k"
	}, nil},
	{"a wait learns of a failure that is tried again", "9 futures", func(b *builder) {
		b.started()
		b.fail("a", b.now+10)
		b.now += 10
		b.tell(history.Wait, "a", "!no")
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"a read shows what no attempt ended with", "9 futures", func(b *builder) {
		b.done("a")
		b.tell(history.Get, "a", "").Outcome = "=2"
	}, nil},
	{"a wait ends without an outcome", "9 futures", func(b *builder) {
		b.done("a")
		b.tell(history.Wait, "a", "")
	}, nil},
}

var executions = []planted{
	{"ran without a Started", "10 effects", aTask, func(r *history.Run) {
		x := r.Executions[0]
		x.Token.Ref++
		r.Executions = append(r.Executions, x)
	}},
	{"ran with a token of another shard", "10 effects", aTask, func(r *history.Run) {
		x := r.Executions[0]
		x.Token.Shard ^= 1
		r.Executions = append(r.Executions, x)
	}},
	{"ran a task that never was", "10 effects", aTask, func(r *history.Run) {
		x := r.Executions[0]
		x.Task = "b"
		r.Executions = append(r.Executions, x)
	}},
	{"ran twice", "10 effects", aTask, func(r *history.Run) { r.Executions = append(r.Executions, r.Executions[0]) }},
	{"ran on another node", "10 effects", aTask, func(r *history.Run) {
		x := r.Executions[0]
		x.Node = "n-2"
		r.Executions = append(r.Executions, x)
	}},
	{"ran as another attempt", "10 effects", aTask, func(r *history.Run) {
		x := r.Executions[0]
		x.Attempt = 2
		r.Executions = append(r.Executions, x)
	}},
	{"succeeded otherwise than reported", "10 effects", aTask, func(r *history.Run) { r.Executions[0].Outcome = "=2" }},
	{"succeeded without a report", "10 effects", aTask, func(r *history.Run) { r.Executions[0].End, r.Executions[0].Outcome = 0, "" }},
	{"succeeded and nothing ran", "10 effects", aTask, func(r *history.Run) { r.Executions = nil }},
	{"failed otherwise than reported", "10 effects", func(b *builder) {
		b.started()
		b.returns("a", "!other")
		b.add("a", b.failed("a", "no", 0))
	}, nil},
	{"failed and nothing ran", "10 effects", func(b *builder) {
		b.submit("a")
		b.add("a", &events.Started{Node: "n-1", Attempt: 1}, b.failed("a", "no", 0))
	}, nil},
	{"failed for good and is tried again", "10 effects", func(b *builder) {
		b.started()
		b.fail("a", b.now+10)
		b.now += 10
		b.run.Executions[0].Final = true
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"failed for a while and is not tried again", "10 effects", func(b *builder) {
		b.started()
		b.fail("a", 0)
		b.run.Executions[0].Final = false
	}, nil},
	{"cancelled and nobody asked", "10 effects", func(b *builder) {
		b.started()
		b.returns("a", "")
		b.add("a", b.failed("a", events.CodeCancelled, 0))
	}, nil},
	{"timed out without a time-out", "10 effects", func(b *builder) {
		b.started()
		b.returns("a", "")
		b.add("a", b.failed("a", events.CodeTimeout, 0))
	}, nil},
	{"lost while it ran", "10 effects", func(b *builder) {
		b.started()
		b.returns("a", "")
		b.add("a", b.failed("a", events.CodeLost, 0))
	}, nil},
	{"two at once", "10 effects", func(b *builder) {
		b.started()
		b.fail("a", b.now+10)
		b.now += 10
		b.start("a", "n-1")
		b.succeed("a")
		b.overlap()
	}, nil},
	{"a function is told of a failure that was none", "10 effects", func(b *builder) {
		b.submit("a")
		b.start("a", "n-1").Try = 2
		b.succeed("a")
	}, nil},
	{"two at once after a snooze", "10 effects", func(b *builder) {
		b.started()
		b.add("a", &events.Snoozed{Until: b.now + 1})
		b.start("a", "n-1")
		b.succeed("a")
		b.overlap()
	}, nil},
}

var orders = []planted{
	{"a read after an outcome shows it running", "linear", func(b *builder) {
		b.started()
		stale := *b.tell(history.Get, "a", "")
		b.succeed("a")
		b.tell(history.Wait, "a", "=1")
		stale.Call, stale.Return = b.tick(), b.tick()
		b.run.Operations = append(b.run.Operations, stale)
	}, nil},
	{"a read after a submit shows nothing", "linear", func(b *builder) {
		b.done("a")
		b.op(history.Operation{Client: 2, Verb: history.Get, Task: "a", Answer: history.Absent}, nil)
	}, nil},
	{"who waits for a run that has ended is told that the task is gone", "linear", func(b *builder) {
		b.event = func(ev *events.Event) { ev.RequestID = "r" }
		b.submit("a").Request = "r"
		b.start("a", "n-1")
		b.succeed("a")
		b.command(history.Delete, "a", &events.Deleted{})
		b.op(history.Operation{Client: 2, Verb: history.Wait, Task: "a", Answer: history.Absent, Request: "r"}, nil)
	}, nil},
	{"who attaches to a forgotten task is told that there is none", "linear", func(b *builder) {
		for _, id := range []string{"x/a", "x/b"} {
			c := b.created()
			c.Policy.RetainCount = 1
			b.op(history.Operation{Verb: history.Submit, Task: id}, func() { b.add(id, c) })
			b.start(id, "n-1")
			b.succeed(id)
		}
		delete(b.tasks, "x/a")
		b.op(history.Operation{Client: 2, Verb: history.Wait, Task: "x/a", Answer: history.Absent}, nil)
	}, nil},
	{"a read shows an attempt before its function began", "linear", func(b *builder) {
		b.submit("a")
		b.start("a", "n-1")
		b.tell(history.Get, "a", "").Attempt = 0
		b.succeed("a")
	}, nil},
	{"a read after the function began shows it CREATED", "linear", func(b *builder) {
		b.submit("a")
		early := *b.tell(history.Get, "a", "")
		b.start("a", "n-1")
		early.Call, early.Return = b.tick(), b.tick()
		b.run.Operations = append(b.run.Operations[:1], early)
		b.succeed("a")
	}, nil},
	{"a wait ends before the function has returned", "linear", func(b *builder) {
		b.started()
		b.tell(history.Wait, "a", "=1")
		b.succeed("a")
	}, nil},
	{"a read shows another outcome than a read before", "linear", func(b *builder) {
		b.started()
		b.fail("a", 0)
		old := *b.tell(history.Get, "a", "")
		b.command(history.Retry, "a", &events.Rescheduled{At: b.now + 1})
		b.start("a", "n-1")
		b.succeed("a")
		old.Call, old.Return = b.tick(), b.tick()
		b.run.Operations = append(b.run.Operations, old)
	}, nil},
	{"a submit makes a task that exists", "linear", func(b *builder) {
		b.submit("a")
		b.op(history.Operation{Verb: history.Delete, Task: "a", Answer: history.Unknown}, func() { b.add("a", &events.Deleted{}) })
		b.tell(history.Get, "a", "")
		b.op(history.Operation{Verb: history.Submit, Task: "a", Answer: history.Unknown}, func() { b.add("a", b.created()) })
		b.start("a", "n-1")
		b.succeed("a")
		b.op(history.Operation{Verb: history.Submit, Task: "a"}, nil)
	}, nil},
	{"a submit of a deleted task joins it", "linear", func(b *builder) {
		b.done("a")
		b.command(history.Delete, "a", &events.Deleted{})
		b.join2("a", false)
	}, nil},
	{"a submit that runs again leaves the task ended", "linear", func(b *builder) {
		b.done("a")
		b.tell(history.Wait, "a", "=1")
		b.join2("a", true)
	}, nil},
	{"a cancel after the end", "linear", func(b *builder) {
		b.started()
		b.op(history.Operation{Verb: history.Cancel, Task: "a", Answer: history.Unknown}, func() { b.add("a", &events.CancelRequested{}) })
		b.succeed("a")
		b.tell(history.Wait, "a", "=1")
		b.command(history.Cancel, "a")
	}, nil},
	{"two deletes of one life", "linear", func(b *builder) {
		b.done("a")
		b.command(history.Delete, "a", &events.Deleted{})
		b.tell(history.Get, "a", "")
		b.submit("a")
		b.op(history.Operation{Client: 3, Verb: history.Delete, Task: "a", Answer: history.Unknown}, func() { b.add("a", &events.Deleted{}) })
		last := b.run.Operations[1]
		last.Call, last.Return = 2, 2 // before anything was deleted
		b.run.Operations = append(b.run.Operations, last)
	}, nil},
	{"a retry before the run had ended", "linear", func(b *builder) {
		b.started()
		b.command(history.Retry, "a")
		b.succeed("a")
		b.op(history.Operation{Verb: history.RunNow, Task: "a", Answer: history.Unknown}, func() { b.add("a", &events.Rescheduled{At: b.now + 1}) })
		b.start("a", "n-1")
		b.succeed("a")
	}, nil},
	{"a run-now while it runs", "linear", func(b *builder) {
		b.started()
		b.command(history.RunNow, "a")
		b.run.Executions[0].End = b.clock
		b.succeed("a")
	}, nil},
	{"a resume while suspended", "linear", func(b *builder) {
		b.submit("a")
		b.command(history.Suspend, "a", &events.Suspended{})
		b.command(history.Resume, "a")
		b.command(history.Suspend, "a")
		b.tell(history.Get, "a", "")
		b.command(history.Resume, "a", &events.Resumed{})
		b.start("a", "n-1")
		b.succeed("a")
		b.run.Operations[2].Call, b.run.Operations[2].Return = 1, 2 // before it was created
	}, nil},
	{"a suspend before it was there", "linear", func(b *builder) {
		b.op(history.Operation{Verb: history.Suspend, Task: "a"}, nil)
		b.submit("a")
		b.command(history.Suspend, "a", &events.Suspended{})
	}, nil},
	{"a wait tells of the run before the one that its submit asked for", "linear", func(b *builder) {
		b.started()
		b.fail("a", 0)
		b.event = func(ev *events.Event) { ev.RequestID = "r" }
		b.join2("a", true, &events.Rescheduled{At: b.now + 1}).Request = "r"
		b.start("a", "n-1")
		b.succeed("a")
		b.tell(history.Wait, "a", "!no").Request = "r"
	}, nil},
	{"a wait for a task that was never gone", "linear", func(b *builder) {
		b.done("a")
		b.op(history.Operation{Verb: history.Wait, Task: "a", Answer: history.Absent}, nil)
	}, nil},
}
