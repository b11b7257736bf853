package world

import (
	"fmt"
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
	traces  int
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

// trace returns a number that no call has had.
func (r *record) trace() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traces++
	return r.traces
}

// operate adds an operation.
func (r *record) operate(op history.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Operations = append(r.run.Operations, op)
}

// Begin implements work.Record: the execution begins now.
func (r *record) Begin(e history.Execution) int {
	e.Begin = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Executions = append(r.run.Executions, e)
	return len(r.run.Executions) - 1
}

// End implements work.Record: the execution ends now.
func (r *record) End(at int, how history.Execution) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &r.run.Executions[at]
	e.End, e.Outcome, e.Final, e.Wait = now, how.Outcome, how.Final, how.Wait
}

// The invariants that the world itself sees broken, as package check names them.
const (
	served       = "3 served"
	acknowledged = "7 acknowledged"
	ended        = "8 ended"
	clean        = "13 clean"
)

// damage notes what the program failed at.
func (r *record) damage(invariant, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Damage = append(r.run.Damage, history.Finding{Invariant: invariant, Text: fmt.Sprintf(format, args...)})
}

// running counts the calls of functions that a session has not seen return.
func (r *record) running(session string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.run.Executions {
		if e := &r.run.Executions[i]; e.Node == session && e.End == 0 {
			n++
		}
	}
	return n
}

// fault adds a fault.
func (r *record) fault(f history.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Faults = append(r.run.Faults, f)
}
