package world

import (
	"context"
	"fmt"
	"sync"
	"time"

	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/task"
)

// recorder holds a history in the making. No fault touches it. Its methods may be called concurrently.
type recorder struct {
	Run   history.Run // to be read and filled in by one goroutine, when nothing else goes on
	Began time.Time

	mu      sync.Mutex
	callers int
	traces  int
}

// Now is the time since the beginning, nanoseconds.
func (r *recorder) Now() int64 { return int64(time.Since(r.Began)) }

// Caller returns a number that no caller has had.
func (r *recorder) Caller() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers++
	return r.callers
}

// Trace returns a number that no call has had.
func (r *recorder) Trace() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traces++
	return r.traces
}

// Operate adds an operation.
func (r *recorder) Operate(op history.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Run.Operations = append(r.Run.Operations, op)
}

// looksEvery is a little more than the time between two looks of a process at how full the store is.
const looksEvery = 2 * time.Second

// Filled notes that a process sees a store in which no new task is accepted, though no fault lets it look so.
func (r *recorder) Filled() {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	spans := &r.Run.Info.Filled
	if n := len(*spans); n > 0 && now-(*spans)[n-1].Until < int64(looksEvery) {
		(*spans)[n-1].Until = now
		return
	}
	*spans = append(*spans, history.Span{From: now, Until: now})
}

// IsFilled reports whether a process has seen such a store at its last look.
func (r *recorder) IsFilled() bool {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.Run.Info.Filled)
	return n > 0 && now-r.Run.Info.Filled[n-1].Until < int64(looksEvery)
}

// Begin takes down that an attempt begins now, and returns its place.
func (r *recorder) Begin(ctx context.Context, a task.Attempt) int {
	e := history.Execution{
		Task:    string(a.Task),
		Node:    traffic.SessionOf(ctx, a.Log),
		Token:   a.Token,
		Attempt: uint32(a.Number),
		Try:     uint32(a.Failures) + 1,
		Begin:   r.Now(),
		Repeats: a.Policy.Every != 0,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Run.Executions = append(r.Run.Executions, e)
	return len(r.Run.Executions) - 1
}

// End takes down that the call at a place ends now.
func (r *recorder) End(at int, how history.Execution) {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &r.Run.Executions[at]
	e.End, e.Outcome, e.Final, e.Wait, e.Releases = now, how.Outcome, how.Final, how.Wait, how.Releases
}

// Change takes down a change that an item of a work has made.
func (r *recorder) Change(c history.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Run.Changes = append(r.Run.Changes, c)
}

// Visit takes down now what a stream did.
func (r *recorder) Visit(v history.Visit) {
	v.At = r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Run.Visits = append(r.Run.Visits, v)
}

// Damage notes what the program failed at.
func (r *recorder) Damage(invariant, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Run.Damage = append(r.Run.Damage, history.Finding{Invariant: invariant, Text: fmt.Sprintf(format, args...)})
}

// Running counts the calls of functions that a session has not seen return.
func (r *recorder) Running(session string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.Run.Executions {
		if e := &r.Run.Executions[i]; e.Node == session && e.End == 0 {
			n++
		}
	}
	return n
}

// Fault adds a fault.
func (r *recorder) Fault(f history.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Run.Faults = append(r.Run.Faults, f)
}
