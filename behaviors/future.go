package behaviors

import (
	"context"
	"fmt"

	"taskledger/events"
)

// Future is the outcome of a task, or one that Then, Handle, All or Any compose of others. It resolves once. The
// future of a task costs nothing until Done, Wait or a composition asks for the outcome. Methods may be called
// concurrently. The zero value is not usable.
type Future[R any] struct {
	task    identity
	outcome outcome[R]
}

// identity names the task of a future; *engine.Future implements it.
type identity interface {
	ID() events.TaskID
	Joined() bool
	Repeated() bool
}

// source is the untyped outcome of a task; *engine.Future implements it.
type source interface {
	Done() <-chan struct{}
	Wait(ctx context.Context) ([]byte, error)
	Then(fn func(result []byte, err error))
	Close()
}

// outcome is a source with a type: that of a task decoded, or a promise.
type outcome[R any] interface {
	Done() <-chan struct{}
	Wait(ctx context.Context) (R, error)
	Then(fn func(r R, err error))
	Close()
}

// ID returns the task's id, "" for a composed future.
func (f *Future[R]) ID() events.TaskID { return f.task.ID() }

// Joined reports whether the task existed before this submit; false for a composed future.
func (f *Future[R]) Joined() bool { return f.task.Joined() }

// Repeated reports whether the same request, by its key, had made or changed the task before this submit; false for a
// composed future.
func (f *Future[R]) Repeated() bool { return f.task.Repeated() }

// Done is closed when the outcome is known or the future is closed.
func (f *Future[R]) Done() <-chan struct{} { return f.outcome.Done() }

// Wait waits for the outcome and returns the result. The error is a *task.Error if the task failed, task.ErrClosed
// after Close, and the cause of ctx if ctx ends first; any other error says why the outcome cannot be known, or that
// the result cannot be decoded as an R. Every caller of Wait on one composed future gets the same value, not a copy.
//
// Under the context of an attempt, or one derived from it, Wait lends the attempt's slot meanwhile, as
// task.Attempt.Lend does: so the task that a handler waits for can run in the handler's slot, if it is of another
// behavior.
func (f *Future[R]) Wait(ctx context.Context) (R, error) { return f.outcome.Wait(ctx) }

// Close stops waiting for the outcome; the task goes on. Closing a composed future also closes the futures that it is
// made of, and a function of Then or Handle that has not started does not run. Close may be called more than once.
func (f *Future[R]) Close() { f.outcome.Close() }

func futureOf[R any](task identity, s source) *Future[R] {
	return &Future[R]{task, decoded[R]{s, task}}
}

// decoded is a source that decodes the result for each caller.
type decoded[R any] struct {
	source
	task identity
}

func (d decoded[R]) Wait(ctx context.Context) (R, error) {
	return d.decode(d.source.Wait(ctx))
}

func (d decoded[R]) Then(fn func(r R, err error)) {
	d.source.Then(func(raw []byte, err error) { fn(d.decode(raw, err)) })
}

func (d decoded[R]) decode(raw []byte, err error) (r R, _ error) {
	if err != nil {
		return r, err
	}
	r, err = safely("decoding", "", func() (R, error) { return decode[R]("result", raw) })
	if err != nil {
		return r, fmt.Errorf("task %s: %w", d.task.ID(), err)
	}
	return r, nil
}
