package main

import (
	"context"
	"maps"
	"slices"
	"sync"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/role"
)

// operations is the record of what all clients did. Its methods may be called concurrently.
type operations struct {
	mu      sync.Mutex
	clients int
	all     []history.Operation
	acked   map[string]bool // tasks whose submit was acknowledged, and that nobody has deleted or cancelled
	waits   map[string]int  // under way, by task
	acks    int             // operations that were told OK
}

func newOperations() *operations {
	return &operations{acked: map[string]bool{}, waits: map[string]int{}}
}

// number is that of one more client: of who makes one call at a time, and of who got no answer to the last one.
func (o *operations) number() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clients++
	return o.clients
}

func (o *operations) add(op history.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, op)
	if op.Answer == history.OK {
		o.acks++
		switch op.Verb {
		case history.Submit:
			o.acked[op.Task] = true
		case history.Cancel, history.Delete: // no function will say that it is over
			delete(o.acked, op.Task)
		}
	}
}

// open counts the waits under way for a task.
func (o *operations) open(task string, more int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits[task] += more; o.waits[task] == 0 {
		delete(o.waits, task)
	}
}

// waited returns the tasks that somebody waits for.
func (o *operations) waited() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.waits))
}

// tasks returns the ids of all tasks that anybody asked for.
func (o *operations) tasks() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := map[string]bool{}
	for _, op := range o.all {
		if op.Verb == history.Submit && op.Task != "" {
			ids[op.Task] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// unnamed reports whether the task of a submit has no id: the engine has drawn it, and the client did not live to tell.
func unnamed(op history.Operation) bool {
	return op.Verb == history.Submit && op.Task == "" && op.Request != "" && op.Answer == history.Unknown
}

// anyUnnamed reports whether there is such a submit.
func (o *operations) anyUnnamed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.all, unnamed)
}

// name gives such submits the ids of the tasks that they created, by request id.
func (o *operations) name(created map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.all {
		if unnamed(o.all[i]) {
			o.all[i].Task = created[o.all[i].Request]
		}
	}
}

// acknowledged reports whether a submit of the task was.
func (o *operations) acknowledged(task string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acked[task]
}

// answered is how many operations were told OK so far.
func (o *operations) answered() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acks
}

// calls records what one process asked.
type calls struct {
	done *operations

	mu      sync.Mutex
	numbers map[int]int               // of clients that go on, by who calls in the process
	open    map[int]history.Operation // by the number of the call
}

func newCalls(done *operations) *calls {
	return &calls{done: done, numbers: map[int]int{}, open: map[int]history.Operation{}}
}

// hear takes the word that a call has begun, or ended.
func (c *calls) hear(w *role.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.Answer == "" {
		c.open[w.Number] = w.Operation
		c.wait(&w.Operation, 1)
		return
	}
	c.settle(w.Number, w.Operation)
}

// underWay counts the calls that have not ended, waits left out.
func (c *calls) underWay() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range c.open {
		if op.Verb != history.Wait {
			n++
		}
	}
	return n
}

// end settles what the process can no longer tell, because it was killed, and returns how many calls and waits those were.
func (c *calls) end() (asked, waits int) {
	asked = c.underWay()
	c.mu.Lock()
	defer c.mu.Unlock()
	waits = len(c.open) - asked
	for number, op := range c.open {
		op.Answer = history.Unknown
		c.settle(number, op)
	}
	return asked, waits
}

// settle records a call that has ended. Who does not know how goes on under another number.
func (c *calls) settle(number int, op history.Operation) {
	delete(c.open, number)
	c.wait(&op, -1)
	caller := op.Client
	if c.numbers[caller] == 0 {
		c.numbers[caller] = c.done.number()
	}
	op.Client = c.numbers[caller]
	if op.Answer == history.Unknown {
		delete(c.numbers, caller)
	}
	c.done.add(op)
}

// wait counts a wait that begins or ends.
func (c *calls) wait(op *history.Operation, more int) {
	if op.Verb == history.Wait {
		c.done.open(op.Task, more)
	}
}

// nameTasks looks in all that was written, trimmed or not, for the ids of tasks whose clients did not live to tell them.
func (r *run) nameTasks(ctx context.Context) error {
	if !r.done.anyUnnamed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, collectWithin)
	defer cancel()
	revision, err := r.mark(ctx)
	if err != nil {
		return err
	}
	all, err := r.recorder.all(ctx, revision)
	if err != nil {
		return err
	}
	r.done.name(createdBy(all.written))
	return nil
}

// createdBy returns the ids of the tasks that requests with an id of their own created, by that id.
func createdBy(j history.Journals) map[string]string {
	tasks := map[string]string{}
	for _, shard := range j.Entries {
		for i := range shard {
			e, err := events.Decode(shard[i].Data)
			if err != nil {
				continue // the checkers tell
			}
			for j := range e.Events {
				if ev := &e.Events[j]; ev.Kind() == events.KindCreated && ev.RequestID != "" {
					tasks[ev.RequestID] = string(ev.Task)
				}
			}
		}
	}
	return tasks
}
