package cli

import (
	"context"
	"errors"

	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/store"
)

// What the program ends with; scripts rely on it.
const (
	exitOK          = 0
	exitFailed      = 1 // the task failed, or a check found something
	exitUsage       = 2
	exitNotFound    = 3
	exitUnavailable = 4 // the cluster cannot be asked, or not in time; or a node could not start or go on
	exitRefused     = 5
	exitNotKept     = 6   // there is such a task, but not what is asked of it: it was trimmed and not archived, or is lost
	exitInterrupted = 130 // what shells report of a program ended by an interrupt
)

func codeOf(err error) int {
	switch {
	case err == nil:
		return exitOK
	case is[*engine.TaskError](err):
		return exitFailed
	case is[*usageError](err) || is[*engine.InvalidError](err) || is[*engine.LimitError](err):
		return exitUsage
	case errors.Is(err, engine.ErrNotKept) || errors.Is(err, store.ErrTrimmed):
		return exitNotKept
	case errors.Is(err, engine.ErrNotFound):
		return exitNotFound
	case is[*engine.StateError](err) || is[*engine.OverloadError](err) ||
		errors.Is(err, engine.ErrUnknownBehavior) || errors.Is(err, embedded.ErrDirInUse) ||
		errors.Is(err, etcdstore.ErrDenied) || errors.Is(err, etcdstore.ErrShards):
		return exitRefused
	case errors.Is(err, engine.ErrUnavailable) || errors.Is(err, engine.ErrUnknown) || errors.Is(err, engine.ErrClosed) ||
		is[*serveError](err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errTimeout) || errors.Is(err, errNoOutcome):
		return exitUnavailable
	}
	return exitFailed
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// serveError is why a node could not start or go on; no task has failed.
type serveError struct{ error }

func (e *serveError) Unwrap() error { return e.error }

// usageError is a mistake on the command line that the flags' own checks cannot see.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }
