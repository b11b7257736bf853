package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"taskledger/events"
)

// Future is the outcome of one run of a task: the run that its submit joined. It resolves once, with the SUCCESS of that run or
// with its final FAILURE; a failed attempt that is retried does not resolve it. It costs nothing until Done, Wait or Then is
// called, so a caller that needs no outcome can drop it. Methods may be called concurrently. The engine never returns a nil Future.
type Future struct {
	futures  *futures // nil when the submit was refused
	shard    int
	id       events.TaskID
	life     events.Ref  // 0 = whichever there is
	since    events.Ref  // no earlier event ends the run: a repetition that was cancelled had the same number
	run      uint32      // 0 = the one that is due or under way, or the last
	watched  atomic.Bool // it is registered, is about to be, or was
	joined   bool
	repeated bool

	mu       sync.Mutex
	resolved bool
	result   []byte
	err      error
	done     chan struct{} // nil until somebody asks for it
	waiters  *waiter       // in Wait
	then     []func([]byte, error)

	// Guarded by the registry.
	asking    bool // a question is under way
	again     bool // there was news meanwhile: its answer may be too old
	recalling bool // its task is not in memory, and is looked for
	asks      askState
	next      *Future // that waits for the same task
}

// failedFuture is the future of a submit that was refused, or whose outcome is unknown.
func failedFuture(id events.TaskID, err error) *Future {
	return &Future{id: id, resolved: true, err: err}
}

// ID returns the task's id; "" when the submit was refused before there was one.
func (f *Future) ID() events.TaskID { return f.id }

// Joined reports whether the task existed before this submit.
func (f *Future) Joined() bool { return f.joined }

// Repeated reports whether the same request, by its key, had made or changed the task before this submit, and so this one changed nothing.
func (f *Future) Repeated() bool { return f.repeated }

// Done is closed when the outcome is known or the future is closed.
func (f *Future) Done() <-chan struct{} {
	f.watch()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = make(chan struct{})
		if f.resolved {
			close(f.done)
		}
	}
	return f.done
}

// Wait waits for the outcome and returns the result as JSON text, nil if there is none. The error is
//
//   - that of the submit, if the submit failed;
//   - a *TaskError if the task failed;
//   - one that wraps ErrNotFound if there is no such task, or it was deleted before the run had ended;
//   - one that wraps task.ErrNotKept if the task has been forgotten and its journal entries were dropped;
//   - ErrClosed after Close, or when the client has stopped;
//   - the cause of ctx if ctx ends first.
//
// Under the context of an attempt it lends the attempt's slot meanwhile: see task.Attempt.Lend.
func (f *Future) Wait(ctx context.Context) ([]byte, error) {
	w := f.await()
	if w == nil {
		return f.result, f.err
	}
	defer f.futures.idle.Put(w)
	defer lendSlot(ctx)()
	select {
	case <-w.woken:
		return f.result, f.err
	case <-ctx.Done():
		if f.leave(w) {
			return nil, context.Cause(ctx)
		}
		<-w.woken
		return f.result, f.err
	}
}

// waiter is a goroutine in Wait.
type waiter struct {
	woken chan struct{} // gets one value
	next  *waiter       // that waits for the same future
}

func newWaiter() any { return &waiter{woken: make(chan struct{}, 1)} }

// await returns a waiter that is woken when the future resolves; nil when it has.
func (f *Future) await() *waiter {
	f.watch()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resolved {
		return nil
	}
	w := f.futures.idle.Get().(*waiter)
	f.waiters, w.next = w, f.waiters
	return w
}

// leave takes w out; false when it has been woken.
func (f *Future) leave(w *waiter) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at := &f.waiters; *at != nil; at = &(*at).next {
		if *at == w {
			*at, w.next = w.next, nil
			return true
		}
	}
	return false
}

// Then calls fn once, in a goroutine of its own, with what Wait would return.
func (f *Future) Then(fn func(result []byte, err error)) {
	f.watch()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resolved {
		f.callback(fn)
		return
	}
	f.then = append(f.then, fn)
}

// Close stops waiting for the outcome; the task goes on.
func (f *Future) Close() {
	f.resolve(nil, ErrClosed) // first: from now on whoever adds it removes it
	if f.futures != nil {
		f.futures.remove(f)
	}
}

// watch begins to watch, once. The future is not locked while it is added: that asks, which may wait for the bus, and what
// resolves it meanwhile must not.
func (f *Future) watch() {
	if f.futures == nil || f.settled() || f.watched.Swap(true) {
		return
	}
	known, err := f.futures.add(f)
	switch {
	case err != nil:
		f.resolve(nil, err)
	case known != nil:
		f.resolve(known.Value())
	case f.settled(): // perhaps by Close, before it was added
		f.futures.remove(f)
	}
}

func (f *Future) settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resolved
}

func (f *Future) resolve(result []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resolved {
		return
	}
	f.resolved, f.result, f.err = true, result, err
	if f.done != nil {
		close(f.done)
	}
	for w := f.waiters; w != nil; {
		next := w.next // w may wait for something else as soon as it is woken
		w.next = nil
		w.woken <- struct{}{}
		w = next
	}
	f.waiters = nil
	for _, fn := range f.then {
		f.callback(fn)
	}
	f.then = nil
}

func (f *Future) callback(fn func([]byte, error)) {
	result, err := f.result, f.err
	if f.futures == nil {
		go fn(result, err)
		return
	}
	f.futures.callbacks.Go(func() { fn(result, err) })
}
