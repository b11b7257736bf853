package works

import (
	"fmt"
	"maps"
	"slices"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/works"
	"taskledger/task"
)

// Workers that end although buckets are free, without having had one, are replaced at once as often as mayEndIdle says
// while no bucket of their work ends. Then the wait for others begins at tryAgain and doubles up to idleWait.
const (
	mayEndIdle = 3
	idleWait   = 64 * tryAgain
)

// seen remembers what an owner has seen of the workers of a work, and its next owner need not know.
type seen struct {
	life   events.Ref     // of the work
	idle   int            // how often workers have ended without a bucket since one ended
	latest uint32         // the highest number of a worker when the last of them did
	until  events.Millis  // others are created from then on
	gaveUp map[string]int // attempts that each node has given back since it ended a bucket, keepApart at most
}

// keepApart bounds for how many workers the attempts of a node count that it has given back.
const keepApart = 4

// atOwner is the extension of the owner of a shard.
type atOwner struct {
	state *projection.Shard
	all   *works.Works
	stir  map[events.TaskID]struct{} // tasks whose work may want something
	retry events.Millis              // when that is looked at again; 0 = it need not be
	again map[events.TaskID]struct{} // tasks whose work is looked at then
	seen  map[events.TaskID]*seen

	streams *streamGauges
}

// AtOwner is the extension of owners.
func AtOwner(state *projection.Shard) shard.Extension {
	o := &atOwner{
		state: state,
		all:   works.Of(state),
		stir:  map[events.TaskID]struct{}{},
		again: map[events.TaskID]struct{}{},
		seen:  map[events.TaskID]*seen{},

		streams: newStreamGauges(works.Of(state)),
	}
	return shard.Extension{
		Served:  o.served,
		NextDue: func() events.Millis { return o.retry },
		MakeDue: o.makeDue,
		Decide:  o.decide,
		Note:    o.note,
		Follow:  follow,
		Answer:  o.answer,
		Beside:  o.beside,
		Explain: o.explain,
		Tell:    o.tell,
		Count:   countChanges,
		Gauges:  o.streams.set,
	}
}

// served looks at every work: the owner before may have left something.
func (o *atOwner) served() {
	for of := range o.all.All {
		o.stir[of.ID] = struct{}{}
	}
	if len(o.stir)+o.all.SpentLen() > 0 {
		o.retry = 1
	}
}

// note has the work looked at to which an event belongs, by its task or a worker.
func (o *atOwner) note(ev *events.Event) {
	if ev.Kind().Record() != events.OfTask {
		return
	}
	o.streams.note(ev)
	if o.all.Len() == 0 {
		return
	}
	of, number := o.all.WorkerOf(ev.Task)
	if of == nil {
		return
	}
	o.stir[of.ID] = struct{}{}
	switch b := ev.Body.(type) {
	case *events.BucketsMoved:
		if b.Ended != 0 {
			o.ends(of, b.Attempt)
		}
	case *events.Succeeded:
		if number > 1 && spare(of) {
			o.of(of).endsIdle(of, number, ev.At)
		}
	case *events.Failed:
		if b.Run != 0 && b.Error.Code != events.CodeCancelled && number > 1 && of.Has(number) == nil {
			o.of(of).endsIdle(of, number, ev.At)
		}
	case *events.Released:
		if b.Node != "" {
			o.of(of).gives(b.Node)
		}
	case *events.WorkPlanned, *events.Suspended, *events.Resumed:
		if is := o.recall(of); is != nil && number == 1 {
			is.gaveUp = nil
		}
	}
}

// spare reports whether a worker without a bucket may have one.
func spare(of *works.Work) bool {
	free, _ := of.Free()
	_, plan := of.Part()
	return free > 0 && len(of.Open()) < int(plan.Workers)
}

// of returns what is remembered of the workers of a work.
func (o *atOwner) of(work *works.Work) *seen {
	if o.recall(work) == nil {
		o.seen[work.ID] = &seen{life: work.Life, gaveUp: map[string]int{}}
	}
	return o.seen[work.ID]
}

// recall returns what is remembered of the workers of a work; nil = nothing. It forgets what belongs to an earlier
// life.
func (o *atOwner) recall(work *works.Work) *seen {
	is := o.seen[work.ID]
	if is != nil && is.life != work.Life {
		delete(o.seen, work.ID)
		return nil
	}
	return is
}

// maxSeen bounds for how many works that are gone something is remembered, beside as many as there are.
const maxSeen = 100

// forget drops what is remembered of works that are gone, once that is much. Retention tells nobody of them.
func (o *atOwner) forget() {
	if len(o.seen) > o.all.Len()+maxSeen {
		maps.DeleteFunc(o.seen, func(id events.TaskID, _ *seen) bool { return o.all.Work(id) == nil })
	}
}

// ends forgets what speaks against workers once an attempt of theirs has ended a bucket, and against its node.
func (o *atOwner) ends(of *works.Work, attempt events.Ref) {
	is := o.recall(of)
	if is == nil {
		return
	}
	is.idle, is.until = 0, 0
	if t := o.state.Attempt(attempt); t != nil {
		delete(is.gaveUp, t.Node)
	}
}

// endsIdle puts off the workers that follow one which has ended although a bucket is free. Those that were there
// together count once.
func (s *seen) endsIdle(of *works.Work, number uint32, now events.Millis) {
	if number <= s.latest {
		return
	}
	s.latest = of.Last()
	if s.idle++; s.idle > mayEndIdle {
		s.until = now + min(tryAgain<<min(s.idle-mayEndIdle-1, 16), idleWait)
	}
}

// gives counts an attempt that a node has given back: others are asked before it.
func (s *seen) gives(node string) {
	if s.gaveUp == nil {
		s.gaveUp = map[string]int{}
	}
	s.gaveUp[node] = min(s.gaveUp[node]+1, keepApart)
}

func (o *atOwner) makeDue(now events.Millis) (moved bool) {
	if o.retry == 0 || o.retry > now {
		return false
	}
	o.retry = 0
	for id := range o.again {
		o.stir[id] = struct{}{}
	}
	clear(o.again)
	return len(o.stir)+o.all.SpentLen() > 0
}

// later has a work looked at again at a time.
func (o *atOwner) later(id events.TaskID, at events.Millis) {
	o.again[id] = struct{}{}
	if o.retry == 0 || at < o.retry {
		o.retry = at
	}
}

// decide creates and wakes workers, ends those whose work has ended, and deletes the tasks of holds that are gone.
func (o *atOwner) decide(d *command.Decider, b command.Budget) {
	deleted, again := deleteSpent(d, o.all, b.Items)
	b.Items -= deleted
	if again != 0 && (o.retry == 0 || again < o.retry) {
		o.retry = again
	}
	if len(o.stir) == 0 {
		return
	}
	o.forget()
	ids := make([]events.TaskID, 0, len(o.stir))
	for id := range o.stir {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	most := b.Items
	for i, id := range ids {
		if most <= 0 || d.EntryFull() || d.Err != nil || i > 0 && b.Over() {
			o.later(id, d.Now+1)
			continue
		}
		delete(o.stir, id)
		if of := o.all.Work(id); of != nil {
			most -= o.tend(d, of, most)
		} else {
			delete(o.seen, id)
		}
	}
	clear(o.stir)
}

// tend does for a work what it wants, by so many events at most, and returns how many it has recorded.
func (o *atOwner) tend(d *command.Decider, of *works.Work, most int) (recorded int) {
	before := len(d.Entry.Entry.Events)
	defer func() { recorded = len(d.Entry.Entry.Events) - before }()
	if !d.MayRecord(events.KindBucketsMoved) {
		o.later(of.ID, d.Now+tryAgain)
		return 0
	}
	endWorkers(d, of)
	alignWorkers(d, of)
	failSpent(d, of)
	o.returnLeft(d, of)
	if d.EntryFull() || d.Err != nil {
		o.later(of.ID, d.Now+1)
		return 0
	}
	w := wanted(o.state, of, d.Now)
	if w.wake {
		d.Emit(o.state.Task(of.ID), &events.Rescheduled{At: d.Now})
	}
	if is := o.recall(of); is != nil && w.create > 0 && is.until > d.Now {
		o.later(of.ID, is.until)
		return 0
	}
	if n := min(w.create, most); createWorkers(d, of, n) < n {
		o.later(of.ID, d.Now+tryAgain)
	} else if n < w.create {
		o.later(of.ID, d.Now+1)
	}
	return 0
}

// returnLeft returns the buckets of attempts that have ended while a node was present that cannot read it.
func (o *atOwner) returnLeft(d *command.Decider, of *works.Work) {
	for _, open := range slices.Clone(of.Open()) {
		if t := o.state.Attempt(open.Attempt); t == nil && d.Err == nil {
			d.Emit(o.state.Task(of.ID), back(&open, events.ReturnedGivenUp))
		}
	}
}

// beside returns by node how many workers of the work of a task run there, and how many it has given back; nil = the
// task is none of a work with others.
func (o *atOwner) beside(t *projection.Task) map[string]int {
	if o.all.Len() == 0 {
		return nil
	}
	of, _ := o.all.WorkerOf(t.ID)
	if of == nil {
		return nil
	}
	byNode := map[string]int{}
	count := func(t *projection.Task) {
		if t != nil && t.OnNode() {
			byNode[t.Node]++
		}
	}
	count(o.state.Task(of.ID))
	for _, w := range of.Workers() {
		if w.Active {
			count(o.state.Task(w.ID))
		}
	}
	if is := o.recall(of); is != nil {
		for node, n := range is.gaveUp {
			byNode[node] += n
		}
	}
	return byNode
}

// explain says what the own task of a work waits for that sleeps.
func (o *atOwner) explain(t *projection.Task) (explanation.Explanation, bool) {
	if of := o.all.Work(t.ID); of != nil && of.Asleep {
		return explanation.Explanation{Why: task.WhyWorkers, Text: waits(of)}, true
	}
	return explanation.Explanation{}, false
}

// tell says how far the stream of a task is, or what the task of a hold is for.
func (o *atOwner) tell(t *projection.Task, now events.Millis) string {
	if of, h := o.all.HoldOf(t.ID); h != nil {
		return holds(of, h, t.Suspended)
	}
	of := o.all.Work(t.ID)
	if of == nil {
		return ""
	}
	return behind(of, now, t.Suspended || t.Status == task.Failure)
}

// waits says what a work waits for whose own task sleeps.
func waits(of *works.Work) string {
	free, _ := of.Free()
	open := len(of.Open())
	text := "it waits for its workers"
	switch {
	case free == 0:
		text += ": no bucket is free, and they have " + counted(uint64(open), "bucket")
	case open == 0:
		text += ": none has one of " + counted(free, "free bucket") + " yet"
	default:
		text += fmt.Sprintf(": they have %s, and %s", counted(uint64(open), "bucket"), counted(free, "further one"))
		if free == 1 {
			return text + " is free"
		}
		return text + " are free"
	}
	return text
}
