package check

import (
	"fmt"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

const (
	// RerunPromise is within what, beside the time to live of its session, the tasks of a node that was killed run
	// again.
	RerunPromise = time.Second
	// rerunSlack is the time that a busy machine gets on top of it: etcd looks for leases that have ended twice a
	// second, and a dozen processes share two processors.
	rerunSlack = 3 * time.Second
)

// checkReruns holds that what ran on a node that was killed ran again in time, where no other fault was near: another
// one may keep the cluster from noticing. Tasks that somebody wanted to stop are left out, and those of a behavior with
// a limit: others may use it up.
func (c *checker) checkReruns() {
	ttl := time.Duration(c.run.Info.TTLMs) * time.Millisecond
	limit := ttl + RerunPromise + rerunSlack
	for i := range c.run.Faults {
		kill := &c.run.Faults[i]
		if kill.Kind != history.KillKind || !c.run.Alone(kill, kill.From-int64(ttl), kill.From+int64(limit)) {
			continue
		}
		for _, again := range c.run.Reruns(kill) {
			t := c.task(again.Task)
			_, limited := c.run.Info.Limits[t.last().behavior]
			switch took := time.Duration(again.Next - kill.From); {
			case !t.known() || t.mayStop() || t.gaveOut() || limited:
			case again.Next == 0:
				c.accuse(ended, t, 0, "it ran on %s, which was killed, and never ran again", kill.Target)
			case took > limit:
				c.accuseLate(ended, t, 0, "it ran on %s, which was killed, and ran again after %s, later than %s", kill.Target, took, limit)
			}
		}
	}
}

// gaveOut reports whether the owner of the task has ended a run of it without an attempt: it was lost too often, its
// deadline had passed, or it is a work which a bucket, or a counter that tripped at another worker, has failed.
func (t *task) gaveOut() bool {
	return slices.ContainsFunc(t.steps, func(s step) bool {
		return slices.Contains([]string{
			"!" + events.CodeLost,
			"!" + events.CodeItems,
			"!" + events.CodeThreshold,
			"!" + events.CodeDeadline,
		}, s.state.outcome)
	})
}

// mayStop reports whether a client, or its schedule, wanted the task not to run.
func (t *task) mayStop() bool {
	return t.replaced() || slices.ContainsFunc(t.operations, func(o *history.Operation) bool {
		return o.Answer != history.Refused && (o.Verb == history.Cancel || o.Verb == history.Suspend || o.Verb == history.Delete)
	})
}

// Spread tells how the times are spread that tasks took.
func Spread(times []time.Duration) string {
	if len(times) == 0 {
		return "no task"
	}
	sorted := slices.Sorted(slices.Values(times))
	at := func(percent int) time.Duration {
		return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(10 * time.Millisecond)
	}
	return fmt.Sprintf("p50 %s, p99 %s, max %s of %d tasks", at(50), at(99), at(100), len(sorted))
}
