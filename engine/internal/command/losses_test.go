package command_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
)

// crashing is a service of one node that some tasks kill and that is started again a little later. What its owner
// decides is decided; nodes, functions and time are simulated.
type crashing struct {
	*journalDriver
	random  *rand.Rand
	slots   int
	kills   map[events.TaskID]bool // tasks that kill the node half a second after their start
	ends    map[events.TaskID]events.Millis
	crashes int
	killed  events.TaskID // which killed the node last
}

func newCrashing(t checker, seed uint64, slots int) *crashing {
	return &crashing{journalDriver: newJournalDriver(t), random: rand.New(rand.NewPCG(seed, 1)), slots: slots, kills: map[events.TaskID]bool{},
		ends: map[events.TaskID]events.Millis{}}
}

// submit makes a task of half a minute, or one that kills its node.
func (c *crashing) submit(id events.TaskID, kills bool) {
	s := c.ask(events.Policy{})
	s.Task, c.kills[id] = id, kills
	c.decide(s)
}

// start starts what is ready in the slots that are free.
func (c *crashing) start() {
	c.entry(func(d *command.Decider) {
		c.state.MakeDue(c.now)
		for len(c.ends) < c.slots {
			t := c.state.Ready("work")
			if t == nil {
				break
			}
			took := 30 * time.Second
			if c.kills[t.ID] {
				took = time.Duration(c.random.IntN(1000)) * time.Millisecond
			}
			d.Start(t, "n", 0, 3*time.Second)
			c.ends[t.ID] = c.now.Add(took)
		}
		c.legal(d)
	})
}

// crash ends the node: its attempts are lost, and it is back within some seconds.
func (c *crashing) crash() {
	c.crashes++
	clear(c.ends)
	c.lose("n")
	c.now = c.now.Add(time.Duration(c.random.IntN(5000)) * time.Millisecond)
}

// next is the task whose attempt comes to its end first, and when; "" if none runs.
func (c *crashing) next() (id events.TaskID, at events.Millis) {
	for other, end := range c.ends {
		if id == "" || end < at || end == at && other < id {
			id, at = other, end
		}
	}
	return id, at
}

// run runs the node until no task is left, or until a time; 0 = none.
func (c *crashing) run(until events.Millis) {
	for until == 0 || c.now < until {
		c.start()
		id, at := c.next()
		if due := c.state.NextDue(); due != 0 && (id == "" || due < at && len(c.ends) < c.slots) {
			id, at = "", due
		} else if id == "" {
			return
		}
		c.now = max(c.now, at)
		switch {
		case id == "":
		case c.kills[id]:
			c.killed = id
			c.crash()
		default:
			t := c.state.Task(id)
			delete(c.ends, id)
			c.decide(&command.Complete{Task: id, Started: t.Started, Node: t.Node})
		}
	}
}

func TestLose_TheTaskThatKillsItsNodeEndsAndThoseBesideItDoNot(t *testing.T) {
	for seed := range uint64(100) {
		c := newCrashing(t, seed, 8+int(seed%4)*8)
		poison := events.TaskID(fmt.Sprintf("poison/%d", seed))
		c.submit(poison, true)
		for i := range 20 {
			c.submit(events.TaskID(fmt.Sprintf("innocent-%d/%d", i, seed)), false)
		}
		c.run(0)
		if task := c.state.Task(poison); c.crashes > 10 || task != nil && task.Error.Code != events.CodeLost {
			t.Errorf("seed %d: after %d crashes the task that kills is %+v; want it lost after ten at most", seed, c.crashes, task)
		}
		ended := map[events.TaskID]task.Status{}
		for _, o := range c.outcomes {
			ended[o.Task] = o.Status
		}
		for i := range 20 {
			if id := events.TaskID(fmt.Sprintf("innocent-%d/%d", i, seed)); ended[id] != task.Success {
				t.Errorf("seed %d: %s ended with %s", seed, id, ended[id])
			}
		}
	}
}

func TestLose_TenCrashesOfANodeInAMinuteEndNoTask(t *testing.T) {
	for seed := range uint64(50) {
		c := newCrashing(t, seed, 64)
		for i := range 20 {
			c.submit(events.TaskID(fmt.Sprintf("innocent-%d/%d", i, seed)), false)
		}
		began := c.now
		for i := range 10 {
			c.run(began.Add(time.Duration(6*i) * time.Second))
			c.start()
			c.lose("n") // and it is back at once
			clear(c.ends)
		}
		c.run(0)
		if len(c.outcomes) != 20 {
			t.Errorf("seed %d: %d outcomes of 20 tasks", seed, len(c.outcomes))
		}
		for _, o := range c.outcomes {
			if o.Status != task.Success {
				t.Errorf("seed %d: %s ended with %s", seed, o.Task, o.Status)
			}
		}
	}
}
