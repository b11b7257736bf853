package engine

import (
	"context"
	"sync/atomic"

	"taskledger/engine/internal/awaited"
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

	value awaited.Value

	// Guarded by the registry.
	asking    bool // a question is under way
	again     bool // there was news meanwhile: its answer may be too old
	recalling bool // its task is not in memory, and is looked for
	asks      askState
	next      *Future // that waits for the same task
}

// failedFuture is the future of a submit that was refused, or whose outcome is unknown.
func failedFuture(id events.TaskID, err error) *Future {
	f := &Future{id: id}
	f.resolve(nil, err)
	return f
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
	return f.value.Done()
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
// A future that was waited for in vain goes on waiting until its run has ended or Close is called: whoever gives up
// closes it.
//
// Under the context of an attempt it lends the attempt's slot meanwhile: see task.Attempt.Lend.
func (f *Future) Wait(ctx context.Context) ([]byte, error) {
	f.watch()
	if f.value.Resolved() {
		return f.value.Get()
	}
	w := f.value.Await(&f.futures.idle)
	if w == nil {
		return f.value.Get()
	}
	defer f.futures.idle.Put(w)
	defer lendSlot(ctx)()
	select {
	case <-w.Woken:
		return f.value.Get()
	case <-ctx.Done():
		if f.value.Leave(w) {
			return nil, context.Cause(ctx)
		}
		<-w.Woken
		return f.value.Get()
	}
}

// Then calls fn once, in a goroutine of its own, with what Wait would return.
func (f *Future) Then(fn func(result []byte, err error)) {
	f.watch()
	f.value.Then(fn, f.start)
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

func (f *Future) settled() bool { return f.value.Resolved() }

func (f *Future) resolve(result []byte, err error) { f.value.Resolve(result, err, f.start) }

func (f *Future) start(fn func()) {
	if f.futures == nil {
		go fn()
		return
	}
	f.futures.callbacks.Go(fn)
}
