// Package check judges a recorded run: whether what clients were told, what functions did and what etcd holds keep the
// invariants of the design. It shares no code with what it judges but the stored form of entries: legal transitions and
// the state that follows from them are written down here a second time. The files fold*.go have the folds of records
// that are no tasks, which import nothing but events.
//
// Each checker is one file, and reports under the number of its invariant. A task or a shard whose journal makes no
// sense is reported once and judged no further.
package check

import (
	"cmp"
	"slices"
	"time"

	"taskledger/integration/robustness/history"
)

// Judgement holds the findings about a run.
type Judgement struct {
	Violations []Violation // in the order of the invariants; linearizability comes last
	Problems   []string    // why the run proves nothing: those of its record, and tasks that could not be judged in time
	Seen       Seen
}

// The verdicts.
const (
	Violated = "violated" // an invariant is broken
	Rejected = "rejected" // none is, and the run proves nothing
	Passed   = "passed"
)

// Verdict is one of Violated, Rejected and Passed.
func (j *Judgement) Verdict() string {
	switch {
	case len(j.Violations) > 0:
		return Violated
	case len(j.Problems) > 0:
		return Rejected
	}
	return Passed
}

// searchLimit bounds the search for an order of the operations of one run.
const searchLimit = 60 * time.Second

// All returns the violations that Judge finds.
func All(run *history.Run) []Violation { return Judge(run).Violations }

// Judge runs every checker. Of a run that was never read, because something else went wrong before, it knows what the
// harness saw.
func Judge(run *history.Run) Judgement { return judgeWithin(run, searchLimit) }

func judgeWithin(run *history.Run, limit time.Duration) Judgement {
	c := newChecker(run)
	c.limit = limit
	c.checkDamage()
	if len(run.Members) > 0 || len(run.Info.Problems) == 0 {
		c.checkAll()
	}
	slices.SortStableFunc(c.found, func(a, b Violation) int { return cmp.Compare(rank(a), rank(b)) })
	problems := slices.Concat(run.Info.Problems, worthless(run), c.unjudged)
	return Judgement{c.found, problems, c.seen()}
}

func (c *checker) checkAll() {
	c.checkEntries()
	c.fold()
	c.checkServed()
	c.checkFences()
	c.checkAcknowledged()
	c.checkCallers()
	c.checkRequests()
	c.checkDelays()
	c.checkEnded()
	c.checkReruns()
	c.checkFutures()
	c.checkExecutions()
	c.checkBatches()
	c.checkRemains()
	c.checkIdle()
	c.checkPaused()
	c.checkAdmission()
	c.checkSettings()
	c.checkLists()
	c.checkItems()
	c.checkSchedules()
	c.checkChanges()
	c.checkStreams()
	c.checkLinear()
}

// checkDamage repeats what the harness itself saw.
func (c *checker) checkDamage() {
	for _, d := range c.run.Damage {
		c.report(d.Invariant, 0, 0, "%s", d.Text)
	}
}
