// Package check judges a recorded run: whether what clients were told, what functions did and what etcd holds keep the
// invariants of the design. It shares no code with what it judges but the stored form of entries: legal transitions and the
// state that follows from them are written down here a second time.
//
// Each checker is one file, and reports under the number of its invariant. A task or a shard whose journal makes no sense is
// reported once and judged no further.
package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// The invariants under which a harness reports what it saw itself.
const (
	Served   = served
	Ended    = ended
	Archived = archived
	Clean    = clean
)

// The invariants, by number and name. That every entry is in archive or journal once, 12, is 1 on the union of both.
const (
	entriesOnce  = "1 entries"      // of a shard are 1..n, each written once, chained, alike on every member
	legal        = "2 legal"        // sequences without gaps, every transition legal
	served       = "3 served"       // is the fold of the journal
	attempts     = "4 attempts"     // an attempt starts after the one before has ended or was given up
	outcomes     = "5 outcomes"     // at most one of an attempt, at most one end of a run
	fenced       = "6 fenced"       // no entry of a session or an owner that was over
	acknowledged = "7 acknowledged" // commands have their events, and events their command
	ended        = "8 ended"        // every acknowledged task that can run
	futures      = "9 futures"      // tell committed outcomes
	effects      = "10 effects"     // follow a commit, and outcomes follow an execution
	once         = "11 once"        // created once, each batch decided once, retries within the policy
	archived     = "12 archive"     // can be read when the faults have healed
	clean        = "13 clean"       // nothing remains after a stop
	idle         = "14 idle"        // no ready task waits beside a free slot, outside of faults
	paused       = "15 paused"      // does not start
	braked       = "16 braked"      // submits add nothing to a store that is almost full
	linear       = "linear"         // what clients were told can be put in one order that the journal explains
)

// Violation is a broken invariant.
type Violation struct {
	Invariant string // number and name
	Task      string // "" = of no single task
	Shard     int
	Entry     uint64 // 0 = of no single entry
	Text      string
}

// String returns all of it in one line.
func (v Violation) String() string {
	where := fmt.Sprintf("shard %d", v.Shard)
	if v.Entry != 0 {
		where += fmt.Sprintf(", entry %d", v.Entry)
	}
	if v.Task != "" {
		where += ", task " + v.Task
	}
	return fmt.Sprintf("%s: %s: %s", v.Invariant, where, v.Text)
}

// Judgement is what a run comes to.
type Judgement struct {
	Violations []Violation // in the order of the invariants; linearizability comes last
	Problems   []string    // why the run proves nothing: those of its record, and tasks that could not be judged in time
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
	problems := slices.Concat(run.Info.Problems, Worthless(run), c.unjudged)
	return Judgement{c.found, problems}
}

func (c *checker) checkAll() {
	c.checkEntries()
	c.fold()
	c.checkServed()
	c.checkFences()
	c.checkAcknowledged()
	c.checkDelays()
	c.checkEnded()
	c.checkReruns()
	c.checkFutures()
	c.checkExecutions()
	c.checkBatches()
	c.checkRemains()
	c.checkIdle()
	c.checkPaused()
	c.checkBraked()
	c.checkLinear()
}

// rank is the number of the invariant.
func rank(v Violation) int {
	n := 0
	if _, err := fmt.Sscanf(v.Invariant, "%d ", &n); err != nil {
		return 99
	}
	return n
}

// checker is a run in the making of its judgement.
type checker struct {
	run      *history.Run
	limit    time.Duration // of the search for an order
	shards   []*journal
	tasks    map[string]*task
	order    []*task       // by id
	latest   events.Millis // the latest time that any entry has
	found    []Violation
	unjudged []string        // tasks for which the search took too long
	accused  map[string]bool // tasks with violations
}

// task is all that the run tells of one task.
type task struct {
	id         string
	shard      *journal
	steps      []step
	broken     bool // the fold stopped
	operations []*history.Operation
	executions []*history.Execution
}

// known reports whether the task's steps are all there are.
func (t *task) known() bool { return !t.broken && !t.shard.broken }

// last is the state at the end.
func (t *task) last() *state {
	if len(t.steps) == 0 {
		return &state{}
	}
	return &t.steps[len(t.steps)-1].state
}

func newChecker(run *history.Run) *checker {
	c := &checker{run: run, tasks: map[string]*task{}, accused: map[string]bool{}}
	for shard := range max(run.Info.Shards, 1) {
		c.shards = append(c.shards, &journal{shard: shard})
	}
	for i := range run.Operations {
		t := c.task(run.Operations[i].Task)
		t.operations = append(t.operations, &run.Operations[i])
	}
	for i := range run.Executions {
		t := c.task(run.Executions[i].Task)
		t.executions = append(t.executions, &run.Executions[i])
	}
	return c
}

func (c *checker) task(id string) *task {
	t := c.tasks[id]
	if t == nil {
		t = &task{id: id, shard: c.shards[events.TaskID(id).Shard(len(c.shards))]}
		c.tasks[id] = t
	}
	return t
}

// sorted returns every task but the settings, by id.
func (c *checker) sorted() []*task {
	if c.order == nil {
		for id, t := range c.tasks {
			if id != string(events.Settings) {
				c.order = append(c.order, t)
			}
		}
		slices.SortFunc(c.order, func(a, b *task) int { return cmp.Compare(a.id, b.id) })
	}
	return c.order
}

// checkDamage repeats what the harness itself saw.
func (c *checker) checkDamage() {
	for _, d := range c.run.Damage {
		c.report(d.Invariant, 0, 0, "%s", d.Text)
	}
}

// report records a violation of a shard.
func (c *checker) report(invariant string, shard int, entry uint64, format string, args ...any) {
	c.found = append(c.found, Violation{Invariant: invariant, Shard: shard, Entry: entry, Text: fmt.Sprintf(format, args...)})
}

// accuse records a violation of a task; entry 0 = of no single one.
func (c *checker) accuse(invariant string, t *task, entry uint64, format string, args ...any) {
	c.accused[t.id] = true
	c.found = append(c.found, Violation{invariant, t.id, t.shard.shard, entry, fmt.Sprintf(format, args...)})
}
