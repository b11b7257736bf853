package check

import (
	"fmt"

	"taskledger/events"
	"taskledger/integration/robustness/folds"
	"taskledger/integration/robustness/itemcheck"
)

// pausing is a change of what is paused.
type pausing struct {
	shard    *journal
	entry    uint64
	behavior string
	paused   bool
	reason   string
	asker    events.Asker
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
		at = &folds.Chain{}
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
		return c.changePause(pausing{j, e.Number, b.Behavior, true, b.Reason, ev.Asker, ev.At})
	case *events.Unpaused:
		return c.changePause(pausing{j, e.Number, b.Behavior, false, "", ev.Asker, ev.At})
	case *events.StoreForgotten:
		return j.items.Forgotten(b.Store, b.Last)
	case *events.AcceptedLoss:
		j.items.Lost()
		j.schedules.Lost()
		return folds.Lost(b.Entry-1, e.Number, b.Sound, j.hash(b.Entry-1))
	case *events.Recovered:
		j.items.Lost()
		j.schedules.Lost()
		return folds.Lost(b.Entry, e.Number, b.Sound, j.hash(b.Entry))
	}
	return "of a kind that is not judged"
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
	shards := make([]*itemcheck.Shard, len(c.shards))
	for i, j := range c.shards {
		j.items.Broken = j.broken
		shards[i] = &j.items
	}
	for _, v := range itemcheck.Judge(c.run.Items, shards) {
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
