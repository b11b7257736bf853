// Package exitcode sorts errors into classes, which are what the program ends with.
package exitcode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"taskledger/api/problem"
	"taskledger/api/remote"
	"taskledger/cmd/node/internal/infiles"
	"taskledger/collections/apply"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/filelogs"
	"taskledger/item"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/store/transfer"
	"taskledger/task"
)

// What the program ends with; scripts rely on it.
const (
	OK          = 0
	Failed      = 1 // the task failed, or a check found something
	Usage       = 2
	NotFound    = 3
	Unavailable = 4 // the cluster cannot be asked, or not in time; its store takes no writes, or its files cannot be read; or a node could not start or go on
	Refused     = 5
	NotKept     = 6   // there is such a task, but not what is asked of it: it was trimmed and not archived, or is lost
	Interrupted = 130 // what shells report of a program ended by an interrupt
)

// Of returns the class of an error: OK for none, Failed for one that belongs to no other.
func Of(err error) int {
	switch {
	case err == nil:
		return OK
	case is[*task.Error](err):
		return Failed
	case is[*UsageError](err) || is[*store.InvalidError](err) || is[*task.LimitError](err):
		return Usage
	case errors.Is(err, task.ErrNotKept) || errors.Is(err, store.ErrTrimmed):
		return NotKept
	case errors.Is(err, task.ErrNotFound) || errors.Is(err, schedule.ErrNotFound):
		return NotFound
	case is[*apply.RefusedError](err) || is[*task.StateError](err) || is[*task.OverloadError](err) || is[*item.ConflictError](err) ||
		errors.Is(err, schedule.ErrChanged) || errors.Is(err, task.ErrOtherRequest) || errors.Is(err, task.ErrUnknownBehavior) || errors.Is(err, embedded.ErrDirInUse) ||
		errors.Is(err, etcdstore.ErrDenied) || errors.Is(err, etcdstore.ErrShards) || errors.Is(err, etcdstore.ErrOtherCluster) || errors.Is(err, store.ErrOutdated) || inOtherHands(err) ||
		errors.Is(err, remote.ErrNoRoute) || deniedByAPI(err):
		return Refused
	case errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrBroken) || errors.Is(err, task.ErrUnknown) || errors.Is(err, task.ErrClosed) ||
		is[*ServeError](err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrTimeout) || errors.Is(err, ErrNoOutcome) ||
		errors.Is(err, ErrNotPrinted) || errors.Is(err, fs.ErrPermission):
		return Unavailable
	}
	return Failed
}

// inOtherHands reports whether a directory holds, or runs, something else than a node was to have there.
func inOtherHands(err error) bool {
	return errors.Is(err, filejournal.ErrInUse) || errors.Is(err, infiles.ErrOtherStore) || errors.Is(err, filestore.ErrShards) ||
		errors.Is(err, store.ErrUnfinished) || errors.Is(err, store.ErrTaken) || errors.Is(err, filestore.ErrUnsettled) ||
		errors.Is(err, transfer.ErrNodes) || errors.Is(err, transfer.ErrDiffers) || errors.Is(err, transfer.ErrTrimmed) ||
		errors.Is(err, filestore.ErrOtherCluster) || errors.Is(err, filearchive.ErrOtherCluster) || errors.Is(err, filelogs.ErrOtherCluster)
}

// deniedByAPI reports whether a node has refused the token of a request, or what it is for.
func deniedByAPI(err error) bool {
	p, is := errors.AsType[*problem.Problem](err)
	return is && (p.Type == problem.Unauthorized || p.Type == problem.Forbidden)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// ServeError reports that a node could not start or go on; no task has failed.
type ServeError struct{ Err error }

// Error implements error.
func (e *ServeError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ServeError) Unwrap() error { return e.Err }

// UsageError is a mistake on the command line that the flags' own checks cannot see.
type UsageError struct{ Problem string }

// Error implements error.
func (e *UsageError) Error() string { return e.Problem }

// ErrTimeout is the cause of an end by --timeout.
var ErrTimeout = errors.New("no answer within --timeout")

// ErrNoOutcome is the same where an outcome is waited for, which may simply take longer.
var ErrNoOutcome = errors.New("no outcome within --timeout")

// ErrNotPrinted reports that something was done whose output could not be written.
var ErrNotPrinted = errors.New("it could not be printed")

// Unprinted says what was done although its output could not be written; nil where that was written.
func Unprinted(done string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s, but %w: %w", done, ErrNotPrinted, err)
}
