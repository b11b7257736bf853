package main

import (
	"slices"
	"strings"
)

// planted is a mutation that a harness is to find.
type planted struct {
	name   string
	by     []string // what may notice it: numbers of invariants, or noEnd, or panicked
	faults string   // of the real processes, separated by commas; "" = it is simulated
	edits  edits    // none = those of the mutation, or of the bug before it, that has this name
}

// The harnesses.
const (
	simulated = "simulated"
	real      = "real"
)

func (p *planted) harness() string {
	if p.faults == "" {
		return simulated
	}
	return real
}

// bug plants edits of its own, or those that its name stands for. by lists the findings that may notice it, separated
// by commas.
func bug(name, by string, of ...edits) planted { return underFaults(name, by, "", of...) }

// underFaults plants a bug for the real processes under the faults of the names.
func underFaults(name, by, faults string, of ...edits) planted {
	return planted{name, strings.Split(by, ", "), faults, slices.Concat(of...)}
}

// known returns the edits of a mutation that has a test.
func known(name string) edits {
	for _, m := range mutations {
		if m.name == name {
			return m.edits
		}
	}
	panic("no mutation is named " + name)
}

// everything returns all that is laid over the tree: the mutations, and the bugs that have edits of their own.
func everything() []mutation {
	all := slices.Clone(mutations)
	for _, p := range plantedBugs {
		if len(p.edits) > 0 {
			all = append(all, mutation{name: p.name, edits: p.edits})
		}
	}
	return all
}

var anyCompletion = in("engine/internal/command/complete.go",
	"t := d.State.Attempt(c.Started)\n	if t == nil || t.ID != c.Task || t.Node != c.Node {\n		d.Stale++\n"+
		"		return Answer{Code: AnswerStale}\n	}\n	switch c.How",
	"t := d.State.Task(c.Task)\n	if t == nil || !t.OnNode() {\n		d.Stale++\n		return Answer{Code: AnswerStale}\n"+
		"	}\n	switch c.How")

var lossOfTheLiving = in("engine/placement.go",
	"_, present := v.Nodes[node]; !present {\n				missing[node]",
	"n, present := v.Nodes[node]; !present || n.Draining {\n				missing[node]").
	and("_, present := v.Nodes[node]; present {\n			continue\n		}",
		"n, present := v.Nodes[node]; present && !n.Draining {\n			continue\n		}")

// definiteFull takes an etcd that has no space at its word, which it breaks when the request is the one that filled it.
var definiteFull = slices.Concat(
	in("etcdstore/transact.go",
		"errors.Is(err, rpctypes.ErrPermissionDenied) || tooLarge(err)",
		"errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrNoSpace) || tooLarge(err)"),
	in("engine/internal/shard/turn.go", "import (\n", "import (\n	\"errors\"\n").
		and("		if err := o.commit(ctx, d.Highest); err != nil {\n",
			`		if err := o.commit(ctx, d.Highest); err != nil {
			for _, r := range o.pending.replies {
				for i := range r.answers {
					r.answers[i] = command.Overload("%s", "the store is full")
				}
				if errors.Is(err, store.ErrRefused) {
					r.Reply(r.Batch, r.answers, true)
				}
			}
`))

// planOfOneOwner asks one owner for a plan, which may be dead or run nothing, and tells that it did not answer as if it
// might have accepted something.
var planOfOneOwner = slices.Concat(known("plan asked of owners alone"),
	in("engine/plan.go",
		"a, err := c.postPlan(ctx, cmd, planners)\n	return readPlanned(a, err, cmd.Behavior)",
		"a, err := c.postPlan(ctx, cmd, planners[:1])\n	if err != nil {\n"+
			`		err = fmt.Errorf("%w: %w", task.ErrUnknown, err)`+"\n	}\n	return readPlanned(a, err, cmd.Behavior)"))

// firstCaller gives all commands of a batch the caller of the first one.
var firstCaller = in("engine/internal/sender/lane.go",
	"f.Batch.Add(c.Command, c.Caller)", "f.Batch.Add(c.Command, f.calls[0].Caller)")

// alienIsFenced takes whatever is stored where the next entry belongs for another owner's.
var alienIsFenced = in("etcdstore/append.go",
	`by somebody who does not own the shard", store.ErrAlien, `,
	`by somebody who does not own the shard", store.ErrFenced, `)

// idBeforeValidation gives an update its ids before it is known whether it is refused, and lets the fold pass over
// those that are left out.
var idBeforeValidation = slices.Concat(known("id of an item that leaves some out"),
	in("projection/items/decide.go",
		"len(p.found) > 0 {\n		return Decision{Problems: p.found, Now: now}, nil\n	}\n	if err := s.room(",
		"in := s.byName[store]; in != nil && len(p.found) > 0 {\n		in.Last += uint64(len(u.Adds) + len(u.Changes))\n"+
			"	}\n	if len(p.found) > 0 {\n		return Decision{Problems: p.found, Now: now}, nil\n	}\n	if err := s.room("))

// lateDelete accepts the delete of an item that has another id by now, as that of one that is gone already.
var lateDelete = slices.Concat(
	in("projection/items/decide.go",
		"for _, id := range u.Deletes {\n		p.changeable(\"deletes\", id)",
		"for _, id := range u.Deletes {\n		if s.Item(store, uint64(id)) == nil {\n			continue\n		}\n"+
			`		p.changeable("deletes", id)`).
		and("was := s.Item(store, uint64(id))\n		d.Events",
			"was := s.Item(store, uint64(id))\n		if was == nil {\n			continue\n		}\n		d.Events"),
	in("engine/internal/stores/decide.go",
		"was := all.Item(store, uint64(id))\n		n -=",
		"was := all.Item(store, uint64(id))\n		if was == nil {\n			continue\n		}\n		n -="))

// runInTheNextEntry creates the run of a tick in the turn after the one that decides the tick.
var runInTheNextEntry = in("engine/internal/schedules/owner.go",
	"// unknown says why", "var lateRuns = map[*atOwner][]func(*command.Decider){}\n\n// unknown says why").
	and("d.Create(next.Create, run)",
		"id := next.Create\n		lateRuns[o] = append(lateRuns[o], func(d *command.Decider) { d.Create(id, run) })\n"+
			"		o.retryAt(d.Now + 1)").
	and("o.correct(d)\n	o.barred = \"\"",
		"for _, create := range lateRuns[o] {\n		create(d)\n	}\n	delete(lateRuns, o)\n	o.correct(d)\n	o.barred = \"\"")

// plantedBugs lists every bug that is to be found. Each breaks a promise: what only hides behind another compare, or
// costs time, is no bug that a history can show.
var plantedBugs = []planted{
	bug("commit without the owner fence, by an owner that handed over", "no end, 1, 6, 8",
		known("commit without the owner fence"),
		in("engine/internal/shard/owner.go",
			"err == nil {\n				return ErrHandedOver\n			}", "err == nil {\n				continue\n			}")),
	bug("commit without the session fence", "6"),
	bug("commit without the compare of the next entry", "1"),
	bug("commit decided by a plain read after a lost answer", "no end, 1, 7, 8"),
	bug("take-over that trusts what it read before the hand-over", "no end, 1, 3, 8",
		in("engine/placement.go", "err := p.m.loader.Replay(ctx, shard, have)", "var err error")),
	bug("take-over that leaves the last entry out", "no end, 1, 3, 8",
		in("engine/internal/shard/loader.go",
			"err := l.State.Replay(e.Entry); err != nil",
			"last != nil {\n			err = l.State.Replay(last)\n		}\n		last = e.Entry\n		if err != nil").
			and("for e, err := range prefetch(ledger.Decoded(",
				"var last *events.Entry\n	for e, err := range prefetch(ledger.Decoded(")),
	bug("completion without attempt and node", "4, 5, 10", anyCompletion),
	bug("late outcome of an ended session is reported and accepted", "4, 5, 10",
		known("outcome reported after the session"), anyCompletion),
	bug("loss declared while the node's key lives", "6", lossOfTheLiving),
	bug("effects before the commit", "9, linear, 10"),
	bug("number forgotten with its owner", "7"),
	bug("number decided twice by one owner", "7, 11"),
	bug("cancel forgotten when the attempt is lost", "2",
		in("engine/internal/command/decider.go",
			"cancelled && d.Err == nil", "_, lost := body.(*events.Lost); cancelled && !lost && d.Err == nil"),
		in("projection/wait.go", `t.Node, t.Due = "", until`, `t.Node, t.Due, t.Cancelled = "", until, false`)),
	bug("retry after a cancel", "no end, 2, 8, 9, 11"),
	bug("take-over that does not fold Suspended", "2",
		in("projection/shard.go",
			"_, err := s.Apply(s.tasks[e.Events[i].Task], &e.Events[i]); err != nil",
			"_, suspended := e.Events[i].Body.(*events.Suspended); suspended {\n			e.Events[i].Body = &events.Resumed{}\n"+
				"		}\n		if _, err := s.Apply(s.tasks[e.Events[i].Task], &e.Events[i]); err != nil")),
	bug("Rescheduled is not folded", "2, 8, 9", in("projection/fold.go", "t.reschedule(ev, b.At)", "_ = b")),
	bug("key that joins another request", "11"),
	bug("request forgotten while it may be repeated", "11"),
	bug("Lost is not counted", "11", in("projection/fold.go", "		t.Lost++\n", "")),
	bug("retry counted twice", "10, 11", in("projection/fold.go", "t.Failures++", "t.Failures += 2")),
	bug("deleted task stays in the queue of ready ones", "2",
		in("projection/shard.go",
			"s.lift(t)\n		t.fold(ev, s.names)",
			"if ev.Kind() != events.KindDeleted || t.Status != task.Created {\n			s.lift(t)\n		}\n		t.fold(ev, s.names)")),
	bug("suspended task stays in the queue of ready ones", "no end, 2, 8",
		in("projection/shard.go", "t.Suspended", "t.Suspended && t.Due > now")),
	bug("future resolved by an earlier run", "linear"),
	bug("reconciliation that releases assignments under way", "10"),
	bug("no reconciliation", "8, no end"),
	bug("offer answered from memory alone", "8, no end"),
	bug("slots given to an offer that is closed", "11",
		in("engine/internal/shard/assign.go", "o.starts.offers = slices.Delete(o.starts.offers, at, at+1)", "_ = at")),
	bug("trim of what nobody archived", "1, 12",
		in("engine/internal/shard/trim.go",
			"archive := t.cfg.Loader.Archive; archive != nil",
			"archive := t.cfg.Loader.Archive; archive != nil && archive.DurableAfter() > 0")),
	bug("snapshot without the runs that have ended", "no end, 3, 8, 9, 11",
		in("projection/restore.go", "s.weigh(t, 1)", "t.Runs = 0\n		s.weigh(t, 1)")),
	bug("entry time that runs back", "1, no end"),
	bug("no space is taken for a definite no", "7, 11", definiteFull),
	bug("futures hear nothing and never ask again", "9",
		in("engine/internal/futures/registry.go", "r.deliver(shard, outcomes)", "_ = outcomes").
			and("for _, f := range r.due(shard, sweep) {\n					r.ask(f)\n				}", "_ = sweep")),
	bug("commit without the predecessor", "1, 3, 6"),
	bug("what is paused starts in a process that does not know it", "15"),
	bug("time of a shard that stands still after a jump", "8, no end"),
	bug("unreadable owner key that nobody can take", "8, no end, 7, 14"),
	bug("slots of offers that are never given back", "14, 8, no end"),
	bug("clocks as old as the node keys that hold them", "3, 14, 8",
		known("load heard anew whenever its node key is read"),
		known("clock that an idle node without a bus keeps to itself")),
	bug("plan asked of one owner, whose silence is passed on", "7", planOfOneOwner),
	bug("bus that is taken to reach everybody", "3, 14"),
	bug("session given up over a file", "no end"),
	bug("future of an earlier run resolved by the end of the life", "linear, 9"),
	bug("future of a forgotten task that asks its owner alone", "linear, 9"),
	bug("submits that pass the admission control with what is there", "16", known("merges that pass the admission control"),
		known("further runs that pass the admission control")),
	bug("alien entry that is taken for another owner's", "8, no end, 7, 14", alienIsFenced),
	bug("wait that is a time of the worker's clock", "11"),

	bug("pause told by nobody", "3"),
	bug("behavior that stays paused", "3, 8, no end, linear"),
	bug("snapshot and digest without the settings", "2, 3, 8, no end, linear"),
	bug("callers of a batch taken for its first one", "7", firstCaller),
	bug("sender taken for the caller before it", "7"),
	bug("task of a request of anybody", "11"),
	bug("principal of the client for that of its caller", "11"),
	bug("join with a request that is not recorded", "linear",
		in("engine/internal/command/submit.go",
			`(request != "" && t.Requests.Of(request) == nil || c.terms(t) != nil)`, "c.terms(t) != nil")),
	bug("requests but the last forgotten by a snapshot", "3, 11, linear",
		in("projection/storedtask.go",
			"t.Requests = requests.Decode(r)",
			"t.Requests = requests.Decode(r)\n		t.Requests = t.Requests[max(0, len(t.Requests)-1):]")),
	bug("terms of the submit before", "linear"),
	bug("repeated request that gets the last run", "9, linear"),
	bug("request that meets what has ended and is not recorded", "11, linear"),
	bug("page that does not wait for a shard", "17"),
	bug("missing shard whose tasks are passed over", "17"),
	bug("list that leaves out what an answer had no room for", "17"),
	bug("priority of a join that is not folded", "3, linear"),
	bug("creator forgotten with other terms", "3",
		in("projection/kinds.go",
			"kindKey{t.Kind.Behavior, terms.Policy, t.Kind.Creator}", `kindKey{t.Kind.Behavior, terms.Policy, ""}`)),
	bug("wait told since another time", "3, linear",
		in("projection/wait.go", `w.Since, w.By, w.Reason = ev.At, "", ""`, `w.By, w.Reason = "", ""`)),

	bug("id of an item taken before validation", "2", idBeforeValidation),
	bug("late owner's delete of an item accepted", "18", lateDelete),
	bug("late owner who changes what another has", "2"),
	bug("claim of an item before its depends", "18",
		in("projection/items/decide.go",
			"p.depend(c.Depends); len(p.found) > 0", "p.depend(c.Depends); len(p.found) > 0 && s.Free(store, c.Group) == 0")),
	bug("depends that an empty group hides", "18"),
	bug("repeated claim that takes a second item, and that the fold takes", "2, 18",
		known("repeated claim that takes a second item"), known("fold that takes a request twice")),
	bug("another request under a key", "18"),
	bug("ids that come again with a store", "2"),
	bug("claims that are not counted", "18"),
	bug("item given up a claim too early", "18",
		in("taskstore/held.go", "most == 0 || h.item.Claims < most || ", "most == 0 || h.item.Claims+1 < most || ")),

	bug("another run after a caller's cancel", "2",
		in("engine/internal/command/complete.go",
			"t.Cancelled:\n		body.Next, body.Run = 0, t.Runs+1",
			"t.Cancelled:\n		body.Next, body.Run = d.repetition(t), t.Runs+1"),
		in("projection/check.go", "t.Cancelled && next != 0", "false")),
	bug("repetition that ends with a run that failed", "2"),

	bug("tick of a schedule that is decided again after a take-over", "2",
		in("engine/internal/schedules/owner.go",
			"o.all.All(func(s *schedules.Schedule) bool {",
			"o.all.All(func(s *schedules.Schedule) bool {\n		if s.Decided != 0 {\n"+
				"			s.Next, s.NextOffset = s.Decided, s.Offset\n		}")),
	bug("tick of a schedule that is not skipped while a run goes on", "2",
		in("projection/schedules/schedules.go",
			"return s.cancelled == s.active\n	}\n	return true", "return s.cancelled == s.active\n	}\n	return false")),
	bug("run of a schedule outside the entry of its tick", "2", runInTheNextEntry),

	bug("bucket given twice after a loss", "2, no end, 8"),
	bug("permit forgotten at a take-over", "2, 3",
		in("projection/shard.go",
			"_, err := s.Apply(s.tasks[e.Events[i].Task], &e.Events[i]); err != nil",
			"b, permits := e.Events[i].Body.(*events.PermitsGranted); permits { // whose they are is "+
				"forgotten, and not how many\n			others := *b\n			others.Items = slices.Clone(b.Items)\n"+
				"			for i := range others.Items {\n				others.Items[i] = ^others.Items[i]\n			}\n"+
				"			e.Events[i].Body = &others\n		}\n"+
				"		if _, err := s.Apply(s.tasks[e.Events[i].Task], &e.Events[i]); err != nil")),
	bug("worker counted after its end", "8, no end, 2"),
	bug("token past an open change", "10"),
	bug("order of messages lost at redelivery", "10"),
	bug("change that is retried later overtaken", "10"),

	underFaults("effects before the commit", "9, linear, 10", "partition-node-etcd,partition-node-all"),
	underFaults("commit without the compare of the next entry", "1", "writes-lost-and-late,replies-lost"),
	underFaults("loss declared while the node's key lives", "6", "rolling-restart"),
	underFaults("forged messages are heard", "2, 7", "bus-forged",
		in("natsbus/subscribe.go", "s.bus.dropForged(m.Subject)", "s.bus.dropForged(m.Subject)\n		s.handle(msg)")),
	underFaults("address of NATS that is read once", "8", "servers-elsewhere"),
	underFaults("callers of a batch taken for its first one", "7", "partition-node-etcd,etcd-leader-kill"),
	underFaults("pause told by nobody", "3", "pause-and-restart"),
	underFaults("token past an open change", "10", "rolling-restart"),
	underFaults("change that is retried later overtaken", "10", "rolling-restart"),
	underFaults("address of etcd that is read once", "8", "servers-elsewhere"),
}
