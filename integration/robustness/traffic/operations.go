package traffic

import (
	"maps"
	"slices"
	"sync"

	"taskledger/integration/robustness/history"
)

// Operations is the record of what all clients did. Its methods may be called concurrently.
type Operations struct {
	mu      sync.Mutex
	clients int
	all     []history.Operation
	items   []history.ItemCall
	acked   map[string]bool // tasks whose submit was acknowledged, and that nobody has deleted or cancelled
	waits   map[string]int  // under way, by task
	acks    int             // operations that were told OK
}

// NewOperations returns a record in which nothing is.
func NewOperations() *Operations {
	return &Operations{acked: map[string]bool{}, waits: map[string]int{}}
}

// number returns the number of one more client: of a new one, or of one that got no answer to its last call.
func (o *Operations) number() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clients++
	return o.clients
}

// Add records an operation that has ended.
func (o *Operations) Add(op history.Operation) {
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
func (o *Operations) open(task string, more int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits[task] += more; o.waits[task] == 0 {
		delete(o.waits, task)
	}
}

// Waited returns the tasks that somebody waits for.
func (o *Operations) Waited() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.waits))
}

// Tasks returns the ids of all tasks that anybody asked for.
func (o *Operations) Tasks() []string {
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

// AnyUnnamed reports whether there is such a submit.
func (o *Operations) AnyUnnamed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.all, unnamed)
}

// Asked names a request: by principal and behavior, as history.Operation has them, and by its key.
type Asked struct{ By, Request string }

// Name gives such submits the ids of the tasks that they, or others who asked for the same, have created.
func (o *Operations) Name(created map[Asked]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.all {
		if unnamed(o.all[i]) {
			o.all[i].Task = created[Asked{o.all[i].By, o.all[i].Request}]
		}
	}
}

// Acknowledged reports whether a submit of the task was.
func (o *Operations) Acknowledged(task string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acked[task]
}

// Answered returns the number of operations that were answered OK so far.
func (o *Operations) Answered() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acks
}

// All returns all that was recorded so far.
func (o *Operations) All() []history.Operation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}

// Items returns the calls to task stores that have ended.
func (o *Operations) Items() []history.ItemCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.items)
}

func (o *Operations) addItem(c history.ItemCall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items = append(o.items, c)
}

// InFlight counts the acknowledged tasks that are not over.
func (o *Operations) InFlight(over func(task string) bool) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.acked {
		if !over(id) {
			n++
		}
	}
	return n
}

// Calls records what one process asked.
type Calls struct {
	done *Operations

	mu      sync.Mutex
	numbers map[int]int               // of clients that go on, by who calls in the process
	open    map[int]history.Operation // by the number of the call
	items   map[itemCall]history.ItemCall
}

// itemCall names a call to a task store.
type itemCall struct {
	source string
	number int64
}

// NewCalls records in done what the calls of a process came to.
func NewCalls(done *Operations) *Calls {
	return &Calls{done: done, numbers: map[int]int{}, open: map[int]history.Operation{}, items: map[itemCall]history.ItemCall{}}
}

// Hear takes the word that a call has begun, or ended.
func (c *Calls) Hear(w *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.Answer == "" {
		c.open[w.Number] = w.Operation
		c.wait(&w.Operation, 1)
		return
	}
	c.settle(w.Number, w.Operation)
}

// HearItem takes the word that a call to a task store has begun, or ended.
func (c *Calls) HearItem(w *ItemCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := itemCall{w.Source, w.Number}
	if w.Answer == "" {
		c.items[is] = w.ItemCall
		return
	}
	delete(c.items, is)
	c.done.addItem(w.ItemCall)
}

// UnderWay counts the calls that have not ended, waits and those to task stores left out.
func (c *Calls) UnderWay() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range c.open {
		if op.Verb != history.Wait {
			n++
		}
	}
	return n
}

// End settles what the process can no longer tell, because it was killed, and returns how many calls and waits those
// were.
func (c *Calls) End() (asked, waits int) {
	asked = c.UnderWay()
	c.mu.Lock()
	defer c.mu.Unlock()
	waits = len(c.open) - asked
	for number, op := range c.open {
		op.Answer = history.Unknown
		c.settle(number, op)
	}
	for is, call := range c.items {
		call.Answer = history.Unknown
		delete(c.items, is)
		c.done.addItem(call)
	}
	return asked, waits
}

// settle records a call that has ended. Who does not know how goes on under another number.
func (c *Calls) settle(number int, op history.Operation) {
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
	c.done.Add(op)
}

// wait counts a wait that begins or ends.
func (c *Calls) wait(op *history.Operation, more int) {
	if op.Verb == history.Wait {
		c.done.open(op.Task, more)
	}
}
