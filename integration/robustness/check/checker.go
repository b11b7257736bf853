package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/folds"
	"taskledger/integration/robustness/history"
)

// checker is a run in the making of its judgement.
type checker struct {
	run      *history.Run
	limit    time.Duration // of the search for an order
	shards   []*journal
	tasks    map[string]*task
	order    []*task       // by id
	pausings []pausing     // in the order of the settings' shard
	latest   events.Millis // the latest time that any entry has
	found    []Violation
	unjudged []string        // tasks for which the search took too long
	accused  map[string]bool // tasks with violations
}

func newChecker(run *history.Run) *checker {
	c := &checker{run: run, tasks: map[string]*task{}, accused: map[string]bool{}}
	for shard := range max(run.Info.Shards, 1) {
		c.shards = append(c.shards, &journal{shard: shard, records: map[events.Record]*folds.Chain{}})
	}
	for i := range run.Operations {
		if run.Operations[i].Verb == history.List {
			continue
		}
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

// sorted returns every task by id.
func (c *checker) sorted() []*task {
	if c.order == nil {
		c.order = slices.AppendSeq(make([]*task, 0, len(c.tasks)), maps.Values(c.tasks))
		slices.SortFunc(c.order, func(a, b *task) int { return cmp.Compare(a.id, b.id) })
	}
	return c.order
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
