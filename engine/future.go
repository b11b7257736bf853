package engine

import (
	"context"

	"taskledger/engine/internal/futures"
	"taskledger/engine/internal/worker"
	"taskledger/events"
)

// Future is the outcome of one run of a task: the run that its submit joined. It resolves once, with the SUCCESS of
// that run or with its final FAILURE; a failed attempt that is retried does not resolve it. It costs nothing until
// Done, Wait or Then is called, so a caller that needs no outcome can drop it. Methods may be called concurrently.
// The engine never returns a nil Future.
type Future struct {
	run      futures.Future
	id       events.TaskID
	joined   bool
	repeated bool
}

// failedFuture returns the future of a submit that was refused, or whose outcome is unknown.
func failedFuture(id events.TaskID, err error) *Future {
	f := &Future{id: id}
	f.run.Fail(err)
	return f
}

// ID returns the task's id; "" when the submit was refused before there was one.
func (f *Future) ID() events.TaskID { return f.id }

// Joined reports whether the task existed before this submit.
func (f *Future) Joined() bool { return f.joined }

// Repeated reports whether the same request, by its key, had made or changed the task before this submit, and so
// this one changed nothing.
func (f *Future) Repeated() bool { return f.repeated }

// Done is closed when the outcome is known or the future is closed.
func (f *Future) Done() <-chan struct{} { return f.run.Done() }

// Wait waits for the outcome and returns the result as JSON text, nil if there is none. The error is
//
//   - that of the submit, if the submit failed;
//   - a *task.Error if the task failed;
//   - one that wraps task.ErrNotFound if there is no such task, or it was deleted before the run had ended;
//   - one that wraps task.ErrNotKept if the task has been forgotten and its journal entries were dropped;
//   - task.ErrClosed after Close, or when the client has stopped;
//   - the cause of ctx if ctx ends first.
//
// A future that was waited for in vain goes on waiting until its run has ended or Close is called: whoever gives up
// closes it.
//
// Under the context of an attempt it lends the attempt's slot meanwhile: see task.Attempt.Lend.
func (f *Future) Wait(ctx context.Context) ([]byte, error) { return f.run.Wait(ctx, worker.Lend) }

// Then calls fn once, in a goroutine of its own, with what Wait would return.
func (f *Future) Then(fn func(result []byte, err error)) { f.run.Then(fn) }

// Close stops waiting for the outcome; the task goes on.
func (f *Future) Close() { f.run.Close() }
