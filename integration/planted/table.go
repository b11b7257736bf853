package main

import (
	"strings"

	"taskledger/integration/bugs"
)

// planted is a bug, and the harness that is to find it.
type planted struct {
	name   string
	by     []string // what may notice it: numbers of invariants, or noEnd, or panicked
	of     []bugs.Bug
	faults string // of the real processes, separated by commas; "" = it is simulated
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

// known returns the bug of a name that the tests know too.
func known(name string) bugs.Bug {
	for _, b := range bugs.Mutations {
		if b.Name == name {
			return b
		}
	}
	panic("no bug is named " + name)
}

// like plants a bug that the tests know. by lists the findings that may notice it, separated by commas.
func like(name, by string) planted { return own(name, by, known(name)) }

// edit is one edit of a file.
func edit(file, old, text string) bugs.Bug {
	return bugs.Bug{File: file, Edits: []bugs.Edit{{Old: old, New: text}}}
}

// own plants edits of its own.
func own(name, by string, of ...bugs.Bug) planted {
	return planted{name: name, by: strings.Split(by, ", "), of: of}
}

// underFaults plants edits for the real processes under the faults of the names.
func underFaults(name, by, faults string, of ...bugs.Bug) planted {
	p := own(name, by, of...)
	p.faults = faults
	return p
}

var anyCompletion = edit("engine/internal/command/complete.go",
	"	t := d.State.Attempt(c.Started)\n	if t == nil || t.ID != c.Task || t.Node != c.Node {\n		d.Stale++\n		return Answer{Code: AnswerStale}\n	}\n	switch c.How {",
	"	t := d.State.Task(c.Task)\n	if t == nil || !t.OnNode() {\n		d.Stale++\n		return Answer{Code: AnswerStale}\n	}\n	switch c.How {")

var lossOfTheLiving = []bugs.Bug{
	edit("engine/placement.go", "			if _, present := v.Nodes[node]; !present {\n				missing[node]",
		"			if n, present := v.Nodes[node]; !present || n.Draining {\n				missing[node]"),
	edit("engine/placement.go", "		if _, present := v.Nodes[node]; present {\n			continue\n		}\n",
		"		if n, present := v.Nodes[node]; present && !n.Draining {\n			continue\n		}\n"),
}

// definiteFull takes an etcd that has no space at its word, which it breaks when the request is the one that filled it.
var definiteFull = []bugs.Bug{
	edit("etcdstore/transact.go", "errors.Is(err, rpctypes.ErrPermissionDenied) || tooLarge(err)", "errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrNoSpace) || tooLarge(err)"),
	edit("engine/internal/shard/turn.go", "import (\n", "import (\n	\"errors\"\n"),
	edit("engine/internal/shard/turn.go", "		if err := o.commit(ctx, d.Highest); err != nil {\n", `		if err := o.commit(ctx, d.Highest); err != nil {
			for _, r := range o.pending.replies {
				for i := range r.answers {
					r.answers[i] = command.Overload("%s", "the store is full")
				}
				if errors.Is(err, store.ErrRefused) {
					r.Reply(r.Batch, r.answers, true)
				}
			}
`),
}

// planOfOneOwner asks one owner for a plan, which may be dead or run nothing, and tells that it did not answer as if it might have
// accepted something.
var planOfOneOwner = []bugs.Bug{
	known("plan asked of owners alone"),
	edit("engine/plan.go", "	a, err := c.postPlan(ctx, cmd, planners)\n	return readPlanned(a, err, cmd.Behavior)\n",
		"	a, err := c.postPlan(ctx, cmd, planners[:1])\n	if err != nil {\n		err = fmt.Errorf(\"%w: %w\", task.ErrUnknown, err)\n	}\n	return readPlanned(a, err, cmd.Behavior)\n"),
}

// firstCaller gives all commands of a batch the caller of the first one.
var firstCaller = edit("engine/internal/sender/lane.go", "f.Batch.Add(c.Command, c.Asker)", "f.Batch.Add(c.Command, f.calls[0].Asker)")

// alienIsFenced takes whatever is stored where the next entry belongs for another owner's.
var alienIsFenced = edit("etcdstore/append.go", "by somebody who does not own the shard\", store.ErrAlien, ", "by somebody who does not own the shard\", store.ErrFenced, ")

// idBeforeValidation gives an update its ids before it is known whether it is refused, and lets the fold pass over those that are left out.
var idBeforeValidation = []bugs.Bug{known("id of an item that leaves some out"), edit("projection/items/decide.go", "	if len(p.found) > 0 {\n		return Decision{Problems: p.found, Now: now}, nil\n	}\n	if err := s.room(",
	"	if in := s.byName[store]; in != nil && len(p.found) > 0 {\n		in.Last += uint64(len(u.Adds) + len(u.Changes))\n	}\n	if len(p.found) > 0 {\n		return Decision{Problems: p.found, Now: now}, nil\n	}\n	if err := s.room(")}

// lateDelete accepts the delete of an item that has another id by now, as that of one that is gone already.
var lateDelete = []bugs.Bug{
	edit("projection/items/decide.go", "	for _, id := range u.Deletes {\n		p.changeable(\"deletes\", id)\n",
		"	for _, id := range u.Deletes {\n		if s.Item(store, uint64(id)) == nil {\n			continue\n		}\n		p.changeable(\"deletes\", id)\n"),
	edit("projection/items/decide.go", "		was := s.Item(store, uint64(id))\n		d.Events", "		was := s.Item(store, uint64(id))\n		if was == nil {\n			continue\n		}\n		d.Events"),
	edit("engine/internal/stores/decide.go", "		was := all.Item(store, uint64(id))\n		n -=", "		was := all.Item(store, uint64(id))\n		if was == nil {\n			continue\n		}\n		n -="),
}

// runInTheNextEntry creates the run of a tick in the turn after the one that decides the tick.
var runInTheNextEntry = []bugs.Bug{
	edit("engine/internal/schedules/owner.go", "	retry   events.Millis       // when", "	late    []func(*command.Decider)\n	retry   events.Millis       // when"),
	edit("engine/internal/schedules/owner.go", "		d.Create(next.Create, run)\n",
		"		id := next.Create\n		o.late = append(o.late, func(d *command.Decider) { d.Create(id, run) })\n		o.retryAt(d.Now + 1)\n"),
	edit("engine/internal/schedules/owner.go", "	o.correct(d)\n	o.barred = \"\"\n",
		"	for _, create := range o.late {\n		create(d)\n	}\n	o.late = nil\n	o.correct(d)\n	o.barred = \"\"\n"),
}

// list is every bug that is to be found. Each breaks a promise: what only hides behind another compare, or costs time, is
// no bug that a history can show.
var list = []planted{
	own("commit without the owner fence, by an owner that handed over", "no end, 1, 6, 8",
		known("commit without the owner fence"),
		edit("engine/internal/shard/owner.go", "			if err == nil {\n				return ErrHandedOver\n			}\n", "			if err == nil {\n				continue\n			}\n")),
	like("commit without the session fence", "6"),
	like("commit without the compare of the next entry", "1"),
	like("commit decided by a plain read after a lost answer", "no end, 1, 7, 8"),
	own("take-over that trusts what it read before the hand-over", "no end, 1, 3, 8",
		edit("engine/placement.go", "	err := p.m.loader.Replay(ctx, shard, have)\n", "	var err error\n")),
	own("take-over that leaves the last entry out", "no end, 1, 3, 8",
		edit("engine/internal/shard/loader.go", "		if err := l.State.Replay(e.Entry); err != nil {\n", "		if last != nil {\n			err = l.State.Replay(last)\n		}\n		last = e.Entry\n		if err != nil {\n"),
		edit("engine/internal/shard/loader.go", "	for e, err := range prefetch(ledger.Decoded(", "	var last *events.Entry\n	for e, err := range prefetch(ledger.Decoded(")),
	own("completion without attempt and node", "4, 5, 10", anyCompletion),
	own("late outcome of an ended session is reported and accepted", "4, 5, 10",
		known("outcome reported after the session"), anyCompletion),
	own("loss declared while the node's key lives", "6", lossOfTheLiving...),
	like("effects before the commit", "9, linear, 10"),
	like("number forgotten with its owner", "7"),
	like("number decided twice by one owner", "7, 11"),
	own("cancel forgotten when the attempt is lost", "2",
		edit("engine/internal/command/decider.go", "	if cancelled && d.Err == nil {\n", "	if _, lost := body.(*events.Lost); cancelled && !lost && d.Err == nil {\n"),
		edit("projection/wait.go", "	t.Node, t.Due = \"\", until\n", "	t.Node, t.Due, t.Cancelled = \"\", until, false\n")),
	like("retry after a cancel", "no end, 2, 8, 9, 11"),
	own("take-over that does not fold Suspended", "2",
		edit("projection/shard.go", "		if _, err := s.Apply(s.tasks[e.Events[i].Task], &e.Events[i]); err != nil {\n",
			"		if _, suspended := e.Events[i].Body.(*events.Suspended); suspended {\n			e.Events[i].Body = &events.Resumed{}\n		}\n		if _, err := s.Apply(s.tasks[e.Events[i].Task], &e.Events[i]); err != nil {\n")),
	own("Rescheduled is not folded", "2, 8, 9",
		edit("projection/fold.go", "		t.reschedule(ev, b.At)\n", "		_ = b\n")),
	like("key that joins another request", "11"),
	like("request forgotten while it may be repeated", "11"),
	own("Lost is not counted", "11", edit("projection/fold.go", "		t.Lost++\n", "")),
	own("retry counted twice", "10, 11", edit("projection/fold.go", "		t.Failures++\n", "		t.Failures += 2\n")),
	own("deleted task stays in the queue of ready ones", "2",
		edit("projection/shard.go", "		s.lift(t)\n		t.fold(ev, s.names)\n", "		if ev.Kind() != events.KindDeleted || t.Status != task.Created {\n			s.lift(t)\n		}\n		t.fold(ev, s.names)\n")),
	own("suspended task stays in the queue of ready ones", "no end, 2, 8",
		edit("projection/shard.go", "	case t.Suspended:\n", "	case t.Suspended && t.Due > now:\n")),
	like("future resolved by an earlier run", "linear"),
	like("roll call that releases assignments under way", "10"),
	like("no roll call", "8, no end"),
	like("offer answered from memory alone", "8, no end"),
	own("slots given to an offer that is closed", "11",
		edit("engine/internal/shard/assign.go", "		o.starts.offers = slices.Delete(o.starts.offers, at, at+1)\n", "		_ = at\n")),
	own("trim of what nobody archived", "1, 12",
		edit("engine/internal/shard/trim.go", "	if archive := t.cfg.Loader.Archive; archive != nil {\n", "	if archive := t.cfg.Loader.Archive; archive != nil && archive.DurableAfter() > 0 {\n")),
	own("snapshot without the runs that have ended", "no end, 3, 8, 9, 11",
		edit("projection/restore.go", "		s.weigh(t, 1)\n", "		t.Runs = 0\n		s.weigh(t, 1)\n")),
	like("entry time that runs back", "1, no end"),
	own("no space is taken for a definite no", "7, 11", definiteFull...),
	own("futures hear nothing and never ask again", "9",
		edit("engine/internal/futures/registry.go", "		r.deliver(shard, outcomes)\n", "		_ = outcomes\n"),
		edit("engine/internal/futures/registry.go", "				for _, f := range r.due(shard, sweep) {\n					r.ask(f)\n				}\n", "				_ = sweep\n")),
	like("commit without the predecessor", "1, 3, 6"),
	like("what is paused starts in a process that does not know it", "15"),
	like("time of a shard that stands still after a jump", "8, no end"),
	like("unreadable owner key that nobody can take", "8, no end, 7, 14"),
	like("slots of offers that are never given back", "14, 8, no end"),
	own("clocks as old as the node keys that hold them", "3, 14, 8",
		known("load heard anew whenever its node key is read"), known("clock that an idle node without a bus keeps to itself")),
	own("plan asked of one owner, whose silence is passed on", "7", planOfOneOwner...),
	like("bus that is taken to reach everybody", "3, 14"),
	like("session given up over a file", "no end"),
	like("future of an earlier run resolved by the end of the life", "linear, 9"),
	like("future of a forgotten task that asks its owner alone", "linear, 9"),
	own("submits that pass the brake with what is there", "16",
		known("merges that pass the brake"), known("further runs that pass the brake")),
	own("alien entry that is taken for another owner's", "8, no end, 7, 14", alienIsFenced),
	like("wait that is a time of the worker's clock", "11"),

	like("pause told by nobody", "3"),
	like("behavior that stays paused", "3, 8, no end, linear"),
	like("snapshot and digest without the settings", "2, 3, 8, no end, linear"),
	own("callers of a batch taken for its first one", "7", firstCaller),
	like("sender taken for the caller before it", "7"),
	like("task of a request of anybody", "11"),
	like("principal of the client for that of its caller", "11"),
	own("join with a request that is not recorded", "linear",
		edit("engine/internal/command/submit.go", `(request != "" && t.Requests.Of(request) == nil || c.terms(t) != nil)`, "c.terms(t) != nil")),
	own("requests but the last forgotten by a snapshot", "3, 11, linear",
		edit("projection/storedtask.go", "		t.Requests = requests.Decode(r)\n", "		t.Requests = requests.Decode(r)\n		t.Requests = t.Requests[max(0, len(t.Requests)-1):]\n")),
	like("terms of the submit before", "linear"),
	like("repeated request that gets the last run", "9, linear"),
	like("request that meets what has ended and is not recorded", "11, linear"),
	like("page that does not wait for a shard", "17"),
	like("missing shard whose tasks are passed over", "17"),
	like("list that leaves out what an answer had no room for", "17"),
	like("priority of a join that is not folded", "3, linear"),
	own("creator forgotten with other terms", "3",
		edit("projection/kinds.go", "kindKey{t.Kind.Behavior, terms.Policy, t.Kind.Creator}", `kindKey{t.Kind.Behavior, terms.Policy, ""}`)),
	own("wait told since another time", "3, linear",
		edit("projection/wait.go", "	w.Since, w.By, w.Reason = ev.At, \"\", \"\"\n", "	w.By, w.Reason = \"\", \"\"\n")),

	own("id of an item taken before validation", "2", idBeforeValidation...),
	own("late owner's delete of an item accepted", "18", lateDelete...),
	like("late owner who changes what another has", "2"),
	own("claim of an item before its depends", "18",
		edit("projection/items/decide.go", "	if p.depend(c.Depends); len(p.found) > 0 {", "	if p.depend(c.Depends); len(p.found) > 0 && s.Free(store, c.Group) == 0 {")),
	like("depends that an empty group hides", "18"),
	own("repeated claim that takes a second item", "2, 18", known("repeated claim that takes a second item"), known("fold that takes a request twice")),
	like("another request under a key", "18"),
	like("ids that come again with a store", "2"),
	like("claims that are not counted", "18"),
	own("item given up a claim too early", "18",
		edit("taskstore/held.go", "most == 0 || h.item.Claims < most || ", "most == 0 || h.item.Claims+1 < most || ")),

	own("another run after a caller's cancel", "2",
		edit("engine/internal/command/complete.go", "	case t.Cancelled:\n		body.Next, body.Run = 0, t.Runs+1\n", "	case t.Cancelled:\n		body.Next, body.Run = d.repetition(t), t.Runs+1\n"),
		edit("projection/check.go", "	if t.Cancelled && next != 0 {\n", "	if false {\n")),
	like("repetition that ends with a run that failed", "2"),

	own("tick of a schedule that is decided again after a take-over", "2",
		edit("engine/internal/schedules/owner.go", "	o.all.All(func(s *schedules.Schedule) bool {\n",
			"	o.all.All(func(s *schedules.Schedule) bool {\n		if s.Decided != 0 {\n			s.Next, s.NextOffset = s.Decided, s.Offset\n		}\n")),
	own("tick of a schedule that is not skipped while a run goes on", "2",
		edit("projection/schedules/schedules.go", "		return s.cancelled == s.active\n	}\n	return true\n", "		return s.cancelled == s.active\n	}\n	return false\n")),
	own("run of a schedule outside the entry of its tick", "2", runInTheNextEntry...),

	like("bucket given twice after a loss", "2, no end, 8"),
	own("permit forgotten at a take-over", "2, 3",
		edit("projection/shard.go", "		if _, err := s.Apply(s.tasks[e.Events[i].Task], &e.Events[i]); err != nil {\n",
			"		if b, permits := e.Events[i].Body.(*events.PermitsGranted); permits { // whose they are is forgotten, and not how many\n			others := *b\n			others.Items = slices.Clone(b.Items)\n			for i := range others.Items {\n				others.Items[i] = ^others.Items[i]\n			}\n			e.Events[i].Body = &others\n		}\n		if _, err := s.Apply(s.tasks[e.Events[i].Task], &e.Events[i]); err != nil {\n")),
	like("worker counted after its end", "8, no end, 2"),
	like("token past an open change", "10"),
	like("order of messages lost at redelivery", "10"),
	like("change that is retried later overtaken", "10"),

	underFaults("effects before the commit", "9, linear, 10", "partition-node-etcd,partition-node-all", known("effects before the commit")),
	underFaults("commit without the compare of the next entry", "1", "writes-lost-and-late,replies-lost", known("commit without the compare of the next entry")),
	underFaults("loss declared while the node's key lives", "6", "rolling-restart", lossOfTheLiving...),
	underFaults("forged messages are heard", "2, 7", "bus-forged",
		edit("natsbus/subscribe.go", "		s.bus.dropForged(m.Subject)\n", "		s.bus.dropForged(m.Subject)\n		s.handle(msg)\n")),
	underFaults("address of NATS that is read once", "8", "servers-elsewhere", known("address of NATS that is read once")),
	underFaults("callers of a batch taken for its first one", "7", "partition-node-etcd,etcd-leader-kill", firstCaller),
	underFaults("pause told by nobody", "3", "pause-and-restart", known("pause told by nobody")),
	underFaults("token past an open change", "10", "rolling-restart", known("token past an open change")),
	underFaults("change that is retried later overtaken", "10", "rolling-restart", known("change that is retried later overtaken")),
	underFaults("address of etcd that is read once", "8", "servers-elsewhere", known("address of etcd that is read once")),
}
