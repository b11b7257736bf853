package check_test

import (
	"cmp"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

const (
	shards = 2
	begin  = events.Millis(1_800_000_000_000)
)

// builder makes a run in which every step is right, unless a test changes one. Each call takes a millisecond of every
// clock.
type builder struct {
	t      testing.TB
	run    *history.Run
	clock  int64 // of the run, nanoseconds
	now    events.Millis
	rev    int64
	owner  string
	epochs [shards]int64
	heads  [shards]events.Entry
	tasks  map[string]*tracked
	chains [shards]map[events.Record]*tracked // of the records that are no tasks
	batch  uint64
	caller events.Caller         // behind the next entry
	change func(e *events.Entry) // of the next entry, before it is sealed
	event  func(e *events.Event) // of the next event
	record func(r *history.Record)
}

// tracked is where the builder left a task.
type tracked struct {
	history.Served
	last, started events.Ref
	version       events.Ref // of a schedule: its last definition
	versions      map[events.SchedulePlan]events.Ref
	set           *events.SchedulePlan
	node          string
	execution     int
	due           events.Millis
	retries       bool // its run has failed, and is not over
}

// newBuilder begins a run with the nodes n-1 and n-2, of which n-1 owns every shard.
func newBuilder(t testing.TB) *builder {
	b := &builder{t: t, run: &history.Run{}, now: begin, rev: 10, tasks: map[string]*tracked{}}
	b.run.Info = history.Info{Kind: "simulated", Seed: 7, Shards: shards, TTLMs: 100, BoundMs: 1000}
	b.run.Members = []history.Journals{{Member: "m-1", Entries: make([][]history.Record, shards)}}
	b.join("n-1")
	b.join("n-2")
	b.own("n-1")
	return b
}

// sound asserts that nothing is found in the run.
func (b *builder) sound() {
	b.t.Helper()
	for _, v := range check.All(b.finish()) {
		b.t.Error(v)
	}
}

// breaks asserts that one violation is found once the run has ended, of an invariant; "" = none is.
func (b *builder) breaks(invariant string) {
	b.t.Helper()
	r := b.finish()
	wallEnds(r)
	found := check.All(r)
	if len(found) > 1 || (len(found) == 1) != (invariant != "") || len(found) == 1 && found[0].Invariant != invariant {
		b.t.Errorf("found %v, want %q", found, invariant)
	}
}

func (b *builder) tick() int64 {
	b.clock += int64(time.Millisecond)
	b.now++
	return b.clock
}

func (b *builder) key(k history.KeyChange) {
	b.rev++
	k.Revision = b.rev
	b.run.Keys = append(b.run.Keys, k)
}

func (b *builder) join(node string)  { b.key(history.KeyChange{Node: node}) }
func (b *builder) leave(node string) { b.key(history.KeyChange{Node: node, Deleted: true}) }

// own makes a node the owner of every shard.
func (b *builder) own(node string) {
	b.owner = node
	for shard := range shards {
		b.key(history.KeyChange{Shard: shard, Owner: node})
		b.epochs[shard] = b.rev
	}
}

// add commits an entry with events of a task.
func (b *builder) add(id string, bodies ...events.Body) {
	b.t.Helper()
	b.commit(events.TaskID(id).Shard(shards), bodies, func(events.Body) (*tracked, events.TaskID) { return b.track(id), events.TaskID(id) })
}

// set commits an entry with events of records that are no tasks, and acknowledges what was asked for.
func (b *builder) set(shard int, bodies ...events.Body) {
	b.t.Helper()
	call := b.clock
	defer func() {
		for i, body := range bodies {
			o := history.Operation{Client: 10 + i, Task: string(events.Settings), Call: call, Return: b.clock, Answer: history.OK}
			switch body := body.(type) {
			case *events.Paused:
				o.Verb, o.Behavior, o.Reason = history.Pause, body.Behavior, body.Reason
			case *events.Unpaused:
				o.Verb, o.Behavior = history.Unpause, body.Behavior
			default:
				var of bool
				if o.Verb, o.Schedule, of = b.callOf(body, shard); !of {
					continue
				}
				o.Task = string(events.ScheduleRecord(scheduleIn(shard)))
				if defined, is := body.(*events.ScheduleDefined); is {
					o.Reason = defined.Reason
				}
			}
			b.run.Operations = append(b.run.Operations, o)
		}
	}()
	b.commit(shard, bodies, func(body events.Body) (*tracked, events.TaskID) {
		if b.chains[shard] == nil {
			b.chains[shard] = map[events.Record]*tracked{}
		}
		of := body.Kind().Record()
		if b.chains[shard][of] == nil {
			b.chains[shard][of] = &tracked{}
		}
		if of == events.OfItem {
			return b.chains[shard][of], events.StoreItem("crawl", 1)
		}
		if of == events.OfSchedule {
			return b.chains[shard][of], events.ScheduleRecord(scheduleIn(shard))
		}
		return b.chains[shard][of], ""
	})
}

// byOwner reports whether nobody asked for an event: it decides a tick, creates the run of one, or follows a failure.
func byOwner(ev events.Event) bool {
	switch body := ev.Body.(type) {
	case *events.Ticked:
		return true
	case *events.Created:
		of := cmp.Or(body.Ties.Run, events.OriginOf(ev.Task))
		return of == events.RunOfTick || of == events.RunOfFill
	case *events.SchedulePaused:
		return body.Failed != ""
	}
	return false
}

// scheduleIn returns the name of a schedule that is in a shard.
func scheduleIn(shard int) string {
	name := "nightly"
	for events.ScheduleRecord(name).Shard(shards) != shard {
		name += "-"
	}
	return name
}

// callOf returns the call about a schedule that an event follows from, if it does from one.
func (b *builder) callOf(body events.Body, shard int) (verb history.Verb, call *history.ScheduleCall, of bool) {
	call = &history.ScheduleCall{}
	if body := events.DefinitionIn(body); body != nil {
		params, _ := body.Params.JSON()
		call.Plan, call.Params, call.Changed = &body.Plan, string(params), true
		call.Version = b.chains[shard][events.OfSchedule].versions[body.Plan]
		return history.SetSchedule, call, true
	}
	switch body := body.(type) {
	case *events.SchedulePaused:
		return history.PauseSchedule, call, body.Failed == ""
	case *events.ScheduleResumed:
		return history.ResumeSchedule, call, true
	case *events.ScheduleEnded:
		return history.DeleteSchedule, call, true
	case *events.BackfillSet:
		call.From, call.To, call.Ticks = body.From, body.To, int(body.Ticks)
		return history.Backfill, call, true
	case *events.BackfillEnded:
		return history.EndBackfill, call, true
	}
	return "", nil, false
}

// commit commits an entry with events, each of what of returns for it.
func (b *builder) commit(shard int, bodies []events.Body, of func(events.Body) (*tracked, events.TaskID)) {
	b.t.Helper()
	b.tick()
	head := b.heads[shard]
	e := events.Entry{Shard: uint16(shard), Number: head.Number + 1, Epoch: b.epochs[shard], Owner: b.owner, Time: b.now, Prev: head.Hash}
	if b.change != nil {
		b.change(&e)
	}
	var entry events.Builder
	entry.Reset(e)
	b.batch++
	origin := entry.AddOrigin(events.Origin{Sender: "s-1", Number: b.batch, Caller: events.Caller{Principal: "ada"}})
	if b.caller != (events.Caller{}) {
		origin = entry.AddOrigin(events.Origin{Batch: origin, Caller: b.caller})
	}
	for _, body := range bodies {
		t, id := of(body)
		ev := events.Event{Task: id, Seq: t.Seq + 1, Prev: t.last, Origin: origin, Body: body}
		if byOwner(ev) {
			ev.Origin = 0
		}
		if b.event != nil {
			b.event(&ev)
		}
		t.nameNode(ev.Body)
		t.fold(entry.Add(ev))
	}
	b.change, b.event, b.caller = nil, nil, events.Caller{}
	data, err := entry.Seal()
	if err != nil {
		b.t.Fatalf("seal: %v", err)
	}
	b.heads[shard] = entry.Entry
	b.rev++
	r := history.Record{Number: e.Number, Revision: b.rev, Created: b.rev, Data: data}
	if b.record != nil {
		b.record(&r)
		b.record = nil
	}
	journal := &b.run.Members[0].Entries[shard]
	*journal = append(*journal, r)
}

func (b *builder) track(id string) *tracked {
	t := b.tasks[id]
	if t == nil {
		t = &tracked{Served: history.Served{Task: id}, execution: -1}
		b.tasks[id] = t
	}
	return t
}

// nameNode says in the end of an attempt where it ran.
func (t *tracked) nameNode(body events.Body) {
	switch body := body.(type) {
	case *events.Lost:
		body.Node = t.node
	case *events.Released:
		body.Node = t.node
	}
}

func (t *tracked) fold(ev *events.Event) {
	t.Seq, t.last = ev.Seq, ev.Position.Ref
	if body := events.DefinitionIn(ev.Body); body != nil {
		if t.versions == nil {
			t.versions = map[events.SchedulePlan]events.Ref{}
		}
		t.version, t.set, t.versions[body.Plan] = ev.Position.Ref, &body.Plan, ev.Position.Ref
	}
	switch body := ev.Body.(type) {
	case *events.Created:
		t.Status, t.due, t.Creator, t.Terms = "CREATED", body.NotBefore, cmp.Or(body.Ties.By, ev.Caller.Principal), history.TermsOf(&body.Policy, body.Priority)
	case *events.Started:
		t.Status, t.Outcome, t.Attempt = "RUNNING", "", body.Attempt
		t.started, t.node, t.LastNode = ev.Position.Ref, body.Node, body.Node
	case *events.Succeeded:
		text, _ := body.Result.JSON()
		t.Status, t.Outcome, t.due = "SUCCESS", "="+string(text), body.Next
		t.Runs++
	case *events.Failed:
		t.Status, t.Outcome, t.due = "FAILURE", "!"+body.Error.Code, body.Next
		if t.retries = body.Run == 0; !t.retries {
			t.Runs++
		}
	case *events.Joined:
		if body.Terms != nil {
			t.Terms = history.TermsOf(&body.Terms.Policy, body.Terms.Priority)
		}
	case *events.Rescheduled:
		if t.retries && body.At == 0 {
			t.Runs++
		}
		t.retries = t.retries && body.At != 0
		t.due = body.At
	case *events.Deleted:
		*t = tracked{Served: history.Served{Task: t.Task}, execution: -1}
	}
}

// op records an operation that begins and ends around what it does.
func (b *builder) op(o history.Operation, does func()) *history.Operation {
	o.Call = b.tick()
	if o.Answer == "" {
		o.Answer = history.OK
	}
	if does != nil {
		does()
	}
	if o.Answer != history.Unknown {
		o.Return = b.tick()
	}
	b.run.Operations = append(b.run.Operations, o)
	return &b.run.Operations[len(b.run.Operations)-1]
}

// created has a policy with 3 attempts, 2 losses and a loss delay of 5 ms.
func (b *builder) created() *events.Created {
	p, err := events.Policy{MaxAttempts: 3, MaxLost: 2, LostDelay: 5 * time.Millisecond}.Complete()
	if err != nil {
		b.t.Fatal(err)
	}
	return &events.Created{Behavior: "work", Policy: p, NotBefore: b.now + 1, Params: events.JSON([]byte("1"))}
}

// submit acknowledges a submit that makes the task.
func (b *builder) submit(id string) *history.Operation {
	return b.op(history.Operation{Verb: history.Submit, Task: id}, func() { b.add(id, b.created()) })
}

func (b *builder) join2(id string, runsAgain bool, bodies ...events.Body) *history.Operation {
	return b.op(history.Operation{Client: 1, Verb: history.Submit, Task: id, Joined: true, RunsAgain: runsAgain}, func() {
		if len(bodies) > 0 {
			b.add(id, bodies...)
		}
	})
}

// command acknowledges a command with its event.
func (b *builder) command(verb history.Verb, id string, bodies ...events.Body) *history.Operation {
	return b.op(history.Operation{Verb: verb, Task: id}, func() {
		if len(bodies) > 0 {
			b.add(id, bodies...)
		}
	})
}

// every is the time after a run of a task at which its policy repeats it.
const every = 60 * time.Millisecond

// repeated begins an attempt of a task that its policy repeats, and runs nothing again that was lost.
func (b *builder) repeated(id string) {
	c := b.created()
	c.Policy.Every, c.Policy.MaxLost = every, 1
	b.op(history.Operation{Verb: history.Submit, Task: id}, func() { b.add(id, c) })
	b.start(id, "n-1")
}

// fails ends a run of such a task, which is run again so long after that.
func (b *builder) fails(id string, after time.Duration) {
	b.returns(id, "!no").Final = true
	b.add(id, b.followed(id, "no", after))
	b.now = b.track(id).due
}

// followed is the failure of a run, recorded in the next entry, that is followed by another one.
func (b *builder) followed(id, code string, after time.Duration) *events.Failed {
	return &events.Failed{Error: events.Error{Code: code}, Next: (b.now + 1).Add(after), Run: b.track(id).Runs + 1}
}

// start commits a Started, and its function begins.
func (b *builder) start(id, node string) *history.Execution {
	b.add(id, &events.Started{Node: node, Attempt: b.track(id).Attempt + 1, Lease: 100})
	t := b.track(id)
	b.run.Executions = append(b.run.Executions, history.Execution{Task: id, Node: node, Attempt: t.Attempt, Begin: b.tick(),
		Token: events.Position{Shard: uint16(events.TaskID(id).Shard(shards)), Ref: t.started}})
	t.execution = len(b.run.Executions) - 1
	return &b.run.Executions[t.execution]
}

// returns ends the call of the task's last attempt.
func (b *builder) returns(id, outcome string) *history.Execution {
	x := &b.run.Executions[b.track(id).execution]
	x.End, x.Outcome = b.tick(), outcome
	return x
}

func (b *builder) succeed(id string) { b.succeedNext(id, 0) }

func (b *builder) succeedNext(id string, next events.Millis) {
	b.returns(id, "=1")
	b.add(id, &events.Succeeded{Result: events.JSON([]byte("1")), Next: next, Run: b.track(id).Runs + 1})
}

// asked runs the task of a request without an id to success.
func (b *builder) asked(id, request, body string) {
	b.event = func(ev *events.Event) { ev.RequestID = request + "#aaaaaaaaaaaaaaaa" }
	o := b.submit(id)
	o.By, o.Request, o.Body = "ada work", request, body
	b.start(id, "n-1")
	b.succeed(id)
}

// repeats acknowledges that such a request is repeated.
func (b *builder) repeats(id, request, body string) *history.Operation {
	return b.op(history.Operation{Client: 1, Verb: history.Submit, Task: id, Joined: true, Repeated: true, By: "ada work", Request: request, Body: body}, nil)
}

// requested runs a task of a behavior that keeps one from a submit, with that request id, to success.
func (b *builder) requested(id, request string) {
	c := b.created()
	c.Policy.RetainCount = 1
	b.op(history.Operation{Verb: history.Submit, Task: id, Request: events.RequestKey(request)}, func() {
		b.event = func(ev *events.Event) { ev.RequestID = request }
		b.add(id, c)
	})
	b.start(id, "n-1")
	b.succeed(id)
}

// fail ends the attempt with code "no"; next 0 ends the run.
func (b *builder) fail(id string, next events.Millis) {
	b.returns(id, "!no").Final = next == 0
	b.add(id, b.failed(id, "no", next))
}

func (b *builder) failed(id, code string, next events.Millis) *events.Failed {
	f := &events.Failed{Error: events.Error{Code: code}, Next: next}
	if next == 0 {
		f.Run = b.track(id).Runs + 1
	}
	return f
}

func (b *builder) tell(verb history.Verb, id, outcome string) *history.Operation {
	o := history.Operation{Client: 2, Verb: verb, Task: id, Outcome: outcome}
	if t := b.track(id); verb == history.Get {
		o.Status, o.Attempt, o.Outcome = t.Status, t.Attempt, t.Outcome
		if t.Status == "" {
			o.Answer = history.Absent
		}
	}
	return b.op(o, nil)
}

// done runs a task from submit to success.
func (b *builder) done(id string) {
	b.submit(id)
	b.start(id, "n-1")
	b.succeed(id)
}

// finish completes the run with a second member and what the owners showed.
func (b *builder) finish() *history.Run {
	b.run.Info.Healed, b.run.Info.End = b.tick(), b.tick()
	b.run.Info.EndWall = int64(b.now) + 10_000
	for _, t := range b.tasks {
		if t.Status != "" {
			b.run.Served = append(b.run.Served, t.Served)
		}
	}
	second := history.Journals{Member: "m-2"}
	for _, records := range b.run.Members[0].Entries {
		second.Entries = append(second.Entries, append([]history.Record(nil), records...))
	}
	b.run.Members = append(b.run.Members, second)
	b.run.Remains.Checked = true
	return b.run
}
