package check

import (
	"fmt"

	"taskledger/events"
)

// pausing is a change of what is paused.
type pausing struct {
	shard    *journal
	entry    uint64
	behavior string
	paused   bool
	reason   string
	caller   events.Caller
	since    events.Millis // of the event
}

// applyRecord folds an event that is of no task.
func (c *checker) applyRecord(j *journal, f *finished, e *entry, ev *events.Event) {
	of := ev.Kind().Record()
	if of == events.OfItem {
		if problem := j.items.Apply(ev); problem != "" {
			c.report(legal, j.shard, e.Number, "%s (event %d of %s): %s", ev.Kind(), ev.Seq, ev.Task, problem)
		}
		return
	}
	if of == events.OfSchedule {
		c.applySchedule(j, f, e, ev)
		return
	}
	at := j.records[of]
	if at == nil {
		at = &recordChain{}
		j.records[of] = at
	}
	if at.Broken {
		return
	}
	problem := at.Judge(ev)
	if problem == "" {
		problem = c.changeRecord(j, e, ev)
	}
	if problem != "" {
		at.Broken = true
		c.report(legal, j.shard, e.Number, "%s (event %d of the %s): %s", ev.Kind(), ev.Seq, of, problem)
		return
	}
	at.Follow(ev)
}

// changeRecord folds what an event says, or says what forbids it.
func (c *checker) changeRecord(j *journal, e *entry, ev *events.Event) string {
	switch b := ev.Body.(type) {
	case *events.Paused:
		return c.changePause(pausing{j, e.Number, b.Behavior, true, b.Reason, ev.Caller, ev.At})
	case *events.Unpaused:
		return c.changePause(pausing{j, e.Number, b.Behavior, false, "", ev.Caller, ev.At})
	case *events.StoreForgotten:
		return j.items.Forgotten(b.Store, b.Last)
	case *events.AcceptedLoss:
		j.lose()
		return lossProblem(b.Entry-1, e.Number, b.Sound, j.hash(b.Entry-1))
	case *events.Recovered:
		j.lose()
		return lossProblem(b.Entry, e.Number, b.Sound, j.hash(b.Entry))
	}
	return "of a kind that is not judged"
}

// lose takes down that a part of the journal was lost.
func (j *journal) lose() {
	j.items.Lost()
	j.schedules.Lost()
	j.works.Lost()
}

func (c *checker) changePause(p pausing) string {
	if want := events.Settings.Shard(len(c.shards)); p.shard.shard != want {
		return fmt.Sprintf("the settings are in shard %d", want)
	}
	was := false
	for _, before := range c.pausings {
		if before.behavior == p.behavior {
			was = before.paused
		}
	}
	if was == p.paused {
		return fmt.Sprintf("of %s, paused %t before", p.behavior, was)
	}
	c.pausings = append(c.pausings, p)
	return ""
}

// hash returns the hash of an entry, the zero value for bytes that are no entry.
func (j *journal) hash(number uint64) (h events.Hash) {
	if number > 0 && number <= uint64(len(j.entries)) {
		h = j.entries[number-1].Hash
	}
	return h
}

// checkItems holds what clients of task stores were told against journals that make sense.
func (c *checker) checkItems() {
	shards := make([]*ItemJournal, len(c.shards))
	for i, j := range c.shards {
		j.items.Broken = j.broken
		shards[i] = &j.items
	}
	for _, v := range JudgeItems(c.run.Items, shards) {
		c.report(itemsTold, v.Shard, v.Entry, "%s", v.Text)
	}
}

// pausedAtTheEnd returns the behaviors that the settings keep from running then.
func (c *checker) pausedAtTheEnd() (paused []string) {
	last := map[string]bool{}
	for _, p := range c.pausings {
		last[p.behavior] = p.paused
	}
	for behavior, is := range last {
		if is {
			paused = append(paused, behavior)
		}
	}
	return paused
}

// applySchedule folds an event of a schedule.
func (c *checker) applySchedule(j *journal, f *finished, e *entry, ev *events.Event) {
	if of := c.schedule(ev.Task.Affinity()); of.shard != j {
		const elsewhere = "%s (event %d of %s): it belongs to shard %d"
		c.report(legal, j.shard, e.Number, elsewhere, ev.Kind(), ev.Seq, ev.Task, of.shard.shard)
		return
	}
	there := func(id events.TaskID) bool { return c.task(string(id)).last().phase != absent }
	problem, givenUp := j.schedules.Apply(ev, there)
	if problem != "" {
		c.report(legal, j.shard, e.Number, "%s (event %d of %s): %s", ev.Kind(), ev.Seq, ev.Task, problem)
	}
	c.leave(f, "", givenUp)
	c.mark(j, e, ev, ev.Task.Affinity())
}

// mark notes the state of a schedule after an event of it, or with nil after one of a run of it. One of a run that
// leaves the schedule as it is leaves no mark.
func (c *checker) mark(j *journal, e *entry, ev *events.Event, name string) {
	is := j.schedules.Schedule(name)
	s := c.schedules[name]
	if s == nil && ev == nil {
		return
	}
	if s = c.schedule(name); ev != nil || s.after(len(s.marks)) != is {
		s.marks = append(s.marks, mark{ev, e.Number, is})
	}
}

// leave hands the ended runs that their schedules keep no more to retention, but for the one that has just had an event.
func (c *checker) leave(f *finished, but events.TaskID, runs []events.TaskID) {
	for _, id := range runs {
		if t := c.task(string(id)); id != but && !t.broken {
			f.add(t)
		}
	}
}
