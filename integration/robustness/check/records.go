package check

import (
	"fmt"

	"taskledger/events"
	"taskledger/integration/robustness/folds"
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
func (c *checker) applyRecord(j *journal, e *entry, ev *events.Event) {
	of := ev.Kind().Record()
	if of == events.OfItem {
		if problem := j.items.Apply(ev); problem != "" {
			c.report(legal, j.shard, e.Number, "%s (event %d of %s): %s", ev.Kind(), ev.Seq, ev.Task, problem)
		}
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
	case *events.AcceptedLoss:
		j.items.Recovered()
		return j.lost(b.Entry-1, e.Number, b.Sound)
	case *events.Recovered:
		j.items.Recovered()
		return j.lost(b.Entry, e.Number, b.Sound)
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

// lost says what keeps the entries after the sound one from having been lost before the given one, "" for nothing.
func (j *journal) lost(sound, before uint64, hash events.Hash) string {
	var want events.Hash
	switch {
	case sound >= before:
		return fmt.Sprintf("what is after entry %d cannot be lost before entry %d", sound, before)
	case sound > 0:
		want = j.entries[sound-1].Hash
	}
	if hash != want {
		return fmt.Sprintf("entry %d has hash %s, not %s", sound, want, hash)
	}
	return ""
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
