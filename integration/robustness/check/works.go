package check

import (
	"encoding/json"

	"taskledger/events"
)

// applyWork folds what an event says of a work, and of a task that works on one, and returns the workers that are kept
// no more.
func (c *checker) applyWork(j *journal, t *task, ev *events.Event) (givenUp []events.TaskID) {
	problem, givenUp := j.works.Apply(ev)
	if problem != "" {
		c.accuse(legal, t, ev.Position.Ref.Entry(), "%s (event %d): %s", ev.Kind(), ev.Seq, problem)
	}
	if b, succeeded := ev.Body.(*events.Succeeded); succeeded {
		c.checkSums(j, t, b, ev.Position.Ref.Entry())
	}
	c.checkBrook(j, t, ev)
	c.count(j, t)
	for _, id := range getOn(j, ev) {
		worker := c.task(string(id))
		c.count(j, worker)
		worker.countsAnew(ev.Position.Ref.Entry())
	}
	return givenUp
}

// getOn returns the tasks that get on by an event: their attempts count anew.
func getOn(j *journal, ev *events.Event) []events.TaskID {
	on := false
	switch b := ev.Body.(type) {
	case *events.BucketsMoved:
		on = b.Ended != 0
	case *events.TokenMoved:
		on = b.Token != "" || b.Items != (events.ItemCounts{})
	case *events.HoldMoved:
		if b.Done > 0 {
			return []events.TaskID{events.HoldID(ev.Task, b.Hold)}
		}
	}
	if !on {
		return nil
	}
	return j.works.WorkersOf(ev.Task)
}

// countsAnew notes that an attempt under way would be told from an entry on that it is the first try: a node that
// learns of it late is told what counts then.
func (t *task) countsAnew(entry uint64) {
	for i := len(t.steps) - 1; i >= 0 && t.steps[i].ev != nil && t.steps[i].state.phase == running; i-- {
		if s := &t.steps[i]; s.ev.Kind() == events.KindStarted {
			if s.anew == 0 {
				s.anew = entry
			}
			return
		}
	}
}

// result is the result of a work, as its documentation has it.
type result struct {
	Partitions []struct {
		ID      string `json:"id"`
		Buckets uint64 `json:"buckets"`
		Done    uint64 `json:"items_done"`
		Failed  uint64 `json:"items_failed"`
		Skipped uint64 `json:"items_skipped"`
	} `json:"partitions"`
}

// checkSums holds the result of a work to what the buckets of its run have come to.
func (c *checker) checkSums(j *journal, t *task, b *events.Succeeded, entry uint64) {
	want, known := j.works.Items(events.TaskID(t.id))
	if !known {
		return
	}
	text, err := b.Result.JSON()
	var told result
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil || len(told.Partitions) != len(want) {
		c.accuse(legal, t, entry, "the work of %d partitions succeeds with %.60q", len(want), text)
		return
	}
	for i, p := range told.Partitions {
		if is := want[i]; p.ID != is.ID || p.Buckets != is.Buckets || (events.ItemCounts{Done: p.Done, Failed: p.Failed, Skipped: p.Skipped}) != is.Items {
			c.accuse(legal, t, entry, "the work succeeds with %+v, and its buckets have come to %+v", p, is)
		}
	}
}

// count takes over, into the state of a task, what counts of its attempts while it works on buckets, or on the changes
// of a hold.
func (c *checker) count(j *journal, t *task) {
	losses, failures, is := j.works.Counts(events.TaskID(t.id))
	if s := t.last(); is && s.policy != nil {
		s.works = s.works || !j.works.HasHold(events.TaskID(t.id))
		s.count(losses, failures, s.policy)
	}
}

// checkWorks reports what works have not kept.
func (c *checker) checkWorks(j *journal, problems []WorkProblem, entry uint64) {
	for _, p := range problems {
		c.accuse(legal, c.task(string(p.Task)), entry, "%s", p.Text)
	}
}

// checkChanges holds that items of works have changed no more than the journal permits: a permit is durable before what
// it permits is done.
func (c *checker) checkChanges() {
	type of struct {
		task string
		run  PartOfRun
	}
	changed := map[of]map[int64]bool{}
	for _, change := range c.run.Changes {
		key := of{change.Task, PartOfRun{Run: change.Run, Partition: change.Partition}}
		if changed[key] == nil {
			changed[key] = map[int64]bool{}
		}
		changed[key][change.Item] = true
	}
	for key, items := range changed {
		t := c.task(key.task)
		if n, known := t.shard.works.Granted(events.TaskID(key.task), key.run); known && t.known() && uint64(len(items)) > n {
			c.accuse(effects, t, 0, "in run %d %d items of partition %s have made a change, and %d were permitted", key.run.Run, len(items), key.run.Partition, n)
		}
	}
}
