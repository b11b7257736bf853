package world

import (
	"sync"
	"time"

	"taskledger/integration/robustness/history"
)

// record gathers the history. No fault touches it. Its methods may be called concurrently.
type record struct {
	began time.Time

	mu      sync.Mutex
	run     history.Run
	callers int
}

// now is the time since the beginning, nanoseconds.
func (r *record) now() int64 { return int64(time.Since(r.began)) }

// caller returns a number that no caller has had.
func (r *record) caller() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers++
	return r.callers
}

// operate adds an operation.
func (r *record) operate(op history.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Operations = append(r.run.Operations, op)
}

// begin adds an execution that begins now, and returns its place.
func (r *record) begin(e history.Execution) int {
	e.Begin = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Executions = append(r.run.Executions, e)
	return len(r.run.Executions) - 1
}

// end completes an execution, which ends now, with the outcome of how.
func (r *record) end(at int, how history.Execution) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &r.run.Executions[at]
	e.End, e.Outcome, e.Final = now, how.Outcome, how.Final
}

// fault adds a fault.
func (r *record) fault(f history.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Faults = append(r.run.Faults, f)
}
