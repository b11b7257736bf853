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
