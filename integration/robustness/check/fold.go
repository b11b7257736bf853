package check

import (
	"cmp"

	"taskledger/events"
)

// fold applies every event, and forgets finished tasks as the entries prescribe.
func (c *checker) fold() {
	for _, j := range c.shards {
		f := finished{shelves: map[string]*shelf{}}
		for _, e := range j.entries {
			j.items.Entry(e.Entry, e.at)
			f.clock.Entry(e.Time)
			for i := range e.Events {
				c.apply(j, &f, e, &e.Events[i])
			}
			c.checkWorks(j, j.works.EndEntry(), e.Number)
			for _, t := range f.forget(e) {
				c.leave(&f, "", j.works.Forgotten(events.TaskID(t.id)))
			}
		}
		late := events.Millis(2*c.run.Info.TTLMs + graceMs)
		c.checkWorks(j, j.works.Remains(c.latest-late), j.last())
	}
}

func (c *checker) apply(j *journal, f *finished, e *entry, ev *events.Event) {
	if ev.Kind().Record() != events.OfTask {
		c.applyRecord(j, f, e, ev)
		return
	}
	c.judgeRun(j, e, ev)
	t := c.task(string(ev.Task))
	if t.shard != j {
		t.broken = true
		c.accuse(legal, t, e.Number, "an event in shard %d, where it does not belong", j.shard)
		return
	}
	if t.broken {
		return
	}
	before := t.last()
	tended := j.works.Tends(ev)
	var rest between
	if ev.Kind() == events.KindReleased {
		rest.least, rest.most = t.asksFor(before.started)
	}
	if j.works.GoesOn(ev.Task, ev.At) && before.policy != nil {
		anew := *before
		anew.count(0, 0, anew.policy)
		before = &anew
	}
	if p := judge(before, ev, rest); p != nil {
		t.broken = true
		j.schedules.Lose(ev.Task)
		j.works.Lose(ev.Task)
		f.remove(t)
		c.accuse(p.invariant, t, e.Number, "%s (event %d) while %s: %s", ev.Kind(), ev.Seq, before.phase, p.text)
		return
	}
	after := before.after(ev)
	f.remove(t)
	t.steps = append(t.steps, step{
		ev:       ev,
		entry:    e.Number,
		state:    after,
		replaced: j.schedules.Replaces(ev),
		tended:   tended,
	})
	c.leave(f, ev.Task, c.applyWork(j, t, ev))
	t.steps[len(t.steps)-1].try = t.last().tries() + 1
	of := cmp.Or(after.origin, before.origin, events.OriginOf(ev.Task))
	givenUp := j.schedules.Task(ev, TaskState{
		Life:  cmp.Or(after.life, before.life),
		Final: after.final(),
		Run:   of,
	})
	if after.final() && !j.schedules.Holds(ev.Task) && !j.works.Holds(ev.Task) {
		f.add(t)
	}
	c.leave(f, ev.Task, givenUp)
	if of != 0 {
		c.mark(j, e, nil, ev.Task.Affinity())
	}
}

// judgeRun holds an event of a task to what schedules have decided.
func (c *checker) judgeRun(j *journal, e *entry, ev *events.Event) {
	if problem := j.schedules.Judge(ev); problem != "" {
		c.report(legal, j.shard, e.Number, "%s (event %d of %s): %s", ev.Kind(), ev.Seq, ev.Task, problem)
	}
}
