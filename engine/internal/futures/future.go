package futures

import (
	"context"
	"sync/atomic"

	"taskledger/events"
	"taskledger/task"
)

// Run names the run of a task that a future waits for.
type Run struct {
	Shard  int
	Task   events.TaskID
	Life   events.Ref // 0: whichever there is
	Number uint32     // within the life; 0: the run that is due or under way, or the last
	Since  events.Ref // no earlier event ends the run: a repetition that was cancelled had the same number
}

// Future is the outcome of one run. Begin or Fail makes it ready for use. It costs nothing until somebody waits.
// Methods may be called concurrently. It must not be copied.
type Future struct {
	registry *Registry // nil: it had its outcome from the beginning
	run      Run       // the registry guards it once the future is watched
	watched  atomic.Bool
	value    value

	// Guarded by the registry.
	asking    bool // a question is under way
	askAgain  bool // a notification came meanwhile: its answer may be too old
	recalling bool // its task is not in memory, and is searched for
	asks      askState
	next      *Future // another future of the same task; nil after the last one
}

// Begin makes f a future of a run. It is called once, before all others.
func (f *Future) Begin(r *Registry, run Run) { f.registry, f.run = r, run }

// Fail makes f a future that ends with an error from the beginning. It is called once, before all others.
func (f *Future) Fail(err error) { f.resolve(nil, err) }

// Done is closed when the outcome is known or the future is closed.
func (f *Future) Done() <-chan struct{} {
	f.watch()
	return f.value.done()
}

// Wait returns the outcome, task.ErrClosed after Close, or the cause of ctx if that ends first. Where it has to
// block it calls block before, and what that returns after.
func (f *Future) Wait(ctx context.Context, block func(context.Context) (unblock func())) ([]byte, error) {
	f.watch()
	if f.value.resolved() {
		return f.value.get()
	}
	w := f.value.await(&f.registry.idle)
	if w == nil {
		return f.value.get()
	}
	defer f.registry.idle.Put(w)
	defer block(ctx)()
	select {
	case <-w.woken:
		return f.value.get()
	case <-ctx.Done():
		if f.value.leave(w) {
			return nil, context.Cause(ctx)
		}
		<-w.woken
		return f.value.get()
	}
}

// Then calls fn once, in a goroutine of its own, with the outcome.
func (f *Future) Then(fn func(result []byte, err error)) {
	f.watch()
	f.value.then(fn, f.start)
}

// Close ends the future with task.ErrClosed, unless it has its outcome.
func (f *Future) Close() {
	f.resolve(nil, task.ErrClosed) // this comes first: whoever adds the future from now on removes it
	if f.registry != nil {
		f.registry.remove(f)
	}
}

// watch begins to watch, once. The future is not locked while it is added: that asks, which may wait for the bus,
// and what resolves it meanwhile must not.
func (f *Future) watch() {
	if f.registry == nil || f.value.resolved() || f.watched.Swap(true) {
		return
	}
	known, err := f.registry.add(f)
	switch {
	case err != nil:
		f.resolve(nil, err)
	case known != nil:
		f.resolve(known.Value())
	case f.value.resolved(): // perhaps by Close, before it was added
		f.registry.remove(f)
	}
}

func (f *Future) resolve(result []byte, err error) { f.value.resolve(result, err, f.start) }

func (f *Future) start(fn func()) {
	if f.registry == nil {
		go fn()
		return
	}
	f.registry.callbacks.Go(fn)
}
