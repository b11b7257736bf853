package check

import (
	"taskledger/events"
	"taskledger/integration/robustness/folds"
)

// applyWork folds what an event says of a work, and of a task that works on one, and returns the workers that are kept
// no more.
func (c *checker) applyWork(j *journal, t *task, ev *events.Event) (givenUp []events.TaskID) {
	problem, givenUp := j.works.Apply(ev)
	if problem != "" {
		c.accuse(legal, t, ev.Position.Ref.Entry(), "%s (event %d): %s", ev.Kind(), ev.Seq, problem)
	}
	c.count(j, t)
	if b, moves := ev.Body.(*events.BucketsMoved); moves && b.Ended != 0 {
		if id := j.works.WorkerOf(ev.Task, b.Worker); id != "" {
			c.count(j, c.task(string(id)))
		}
	}
	return givenUp
}

// count takes over, into the state of a task, what counts of its attempts while it works on buckets.
func (c *checker) count(j *journal, t *task) {
	losses, failures, is := j.works.Counts(events.TaskID(t.id))
	if s := t.last(); is && s.policy != nil {
		s.count(losses, failures, s.policy)
	}
}

// checkWorks reports what works have not kept.
func (c *checker) checkWorks(j *journal, problems []folds.WorkProblem, entry uint64) {
	for _, p := range problems {
		c.accuse(legal, c.task(string(p.Task)), entry, "%s", p.Text)
	}
}

// checkChanges holds that items of works have changed no more than the journal permits: a permit is durable before what
// it permits is done.
func (c *checker) checkChanges() {
	type of struct {
		task string
		run  folds.PartOfRun
	}
	changed := map[of]map[int64]bool{}
	for _, change := range c.run.Changes {
		key := of{change.Task, folds.PartOfRun{Run: change.Run, Partition: change.Partition}}
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
