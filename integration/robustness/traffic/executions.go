package traffic

import (
	"slices"
	"sync"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// Executions is the record of what functions did, as they tell themselves. Its methods may be called concurrently.
type Executions struct {
	mu      sync.Mutex
	running map[call]int              // index in all
	limited map[limited]map[call]bool // of running, and the most there were at once
	most    map[limited]int
	all     []history.Execution
	over    map[string]bool // tasks whose last function asked for no further run
}

// call names one call of a function. That it is called twice is what the checkers look for.
type call struct {
	node  string
	token events.Position
	begin int64
}

// limited is a behavior on a session.
type limited struct{ node, behavior string }

// NewExecutions returns a record in which nothing is.
func NewExecutions() *Executions {
	return &Executions{running: map[call]int{}, over: map[string]bool{}, limited: map[limited]map[call]bool{}, most: map[limited]int{}}
}

// MostOn returns how many attempts of a behavior a session has made at once at most.
func (o *Executions) MostOn(session, behavior string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.most[limited{session, behavior}]
}

// MadeBy counts the attempts that a session has begun.
func (o *Executions) MadeBy(session string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.all {
		if o.all[i].Node == session {
			n++
		}
	}
	return n
}

// IsOver reports whether the last function of a task asked for no further run.
func (o *Executions) IsOver(task string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over[task]
}

// Hear takes the word that a call has begun, or ended.
func (o *Executions) Hear(r *Report) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over[r.Task] = r.Last
	key := call{r.Node, r.Token, r.Begin}
	at := limited{r.Node, r.Behavior}
	if o.limited[at] == nil {
		o.limited[at] = map[call]bool{}
	}
	if r.Goes {
		o.limited[at][key] = true
		o.most[at] = max(o.most[at], len(o.limited[at]))
		o.running[key] = len(o.all)
		o.all = append(o.all, r.Execution)
		return
	}
	delete(o.limited[at], key)
	if at, known := o.running[key]; known {
		o.all[at] = r.Execution
		delete(o.running, key)
	}
}

// RunningOn counts the functions that a session runs since a time, or longer.
func (o *Executions) RunningOn(session string, since int64) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.running {
		if key.node == session && key.begin <= since {
			n++
		}
	}
	return n
}

// All returns all that was recorded so far.
func (o *Executions) All() []history.Execution {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}
