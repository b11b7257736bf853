package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// checker is a run in the making of its judgement.
type checker struct {
	run       *history.Run
	limit     time.Duration // of the search for an order
	shards    []*journal
	tasks     map[string]*task
	schedules map[string]*timetable // by name
	order     []*task               // by id
	pausings  []pausing             // in the order of the settings' shard
	latest    events.Millis         // the latest time that any entry has
	found     []Violation
	unjudged  []string        // tasks for which the search took too long
	excused   bool            // nothing that came too late is judged, which unjudged tells
	accused   map[string]bool // tasks with violations
}

func newChecker(run *history.Run) *checker {
	c := &checker{run: run, tasks: map[string]*task{}, schedules: map[string]*timetable{}, accused: map[string]bool{}}
	for shard := range max(run.Info.Shards, 1) {
		c.shards = append(c.shards, &journal{shard: shard, records: map[events.Record]*recordChain{}})
	}
	for i := range run.Operations {
		if o := &run.Operations[i]; o.Verb.OfSchedule() {
			if o.Verb != history.ListSchedules {
				s := c.schedule(events.TaskID(o.Task).Affinity())
				s.operations = append(s.operations, o)
			}
			continue
		} else if o.Verb == history.List {
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

// accuseLate is accuse of what came too late. Where the machine starved nodes that tells nothing of the engine: it is a reason to reject the
// run, which is then made again.
func (c *checker) accuseLate(invariant string, t *task, entry uint64, format string, args ...any) {
	starved := c.starved()
	if len(starved) == 0 {
		c.accuse(invariant, t, entry, format, args...)
		return
	}
	if !c.excused {
		c.excused = true
		c.unjudged = append(c.unjudged, fmt.Sprintf("the machine gave nodes too little of its processors: no fault explains why sessions ended: %s; "+
			"so nothing that came too late is judged, the first of which is task %s: %s", strings.Join(starved, ", "), t.id, fmt.Sprintf(format, args...)))
	}
}

// starved returns the sessions of real processes that ended although their nodes were neither leaving nor killed, and no fault was near that
// may end the sessions of others than the node that it kills.
func (c *checker) starved() (sessions []string) {
	if c.run.Info.Kind != "real" {
		return nil
	}
	leaving := map[string]bool{}
	for i := range c.run.Faults {
		if f := &c.run.Faults[i]; f.Kind == history.KillKind {
			_, session, _ := strings.Cut(f.Target, " ")
			leaving[session] = true
		}
	}
	disturbed := c.disturbedBy(func(f *history.Fault) bool { return f.Kind != history.KillKind })
	for i := range c.run.Keys {
		switch k := &c.run.Keys[i]; {
		case k.Node == "" || k.At == 0:
		case !k.Deleted:
			leaving[k.Node] = leaving[k.Node] || k.Draining
		case !leaving[k.Node] && len(span{k.At, k.At + 1}.without(disturbed)) > 0:
			sessions = append(sessions, k.Node)
		}
	}
	return sessions
}

// schedule returns what is known of a schedule.
func (c *checker) schedule(name string) *timetable {
	s := c.schedules[name]
	if s == nil {
		s = &timetable{name: name, shard: c.shards[events.ScheduleRecord(name).Shard(len(c.shards))]}
		c.schedules[name] = s
	}
	return s
}
