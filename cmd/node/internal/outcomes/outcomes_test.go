package outcomes_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/outcomes"
	"taskledger/events"
	"taskledger/task"
)

// pending is a task that does not end before the wait for it does.
type pending struct {
	operations.Handle
	closed *atomic.Int64
}

func (p pending) Close() { p.closed.Add(1) }

func (pending) ID() events.TaskID { return "pending" }

func (pending) Wait(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// done is a task whose outcome comes unless the time is over when it is waited for. It ends the wait of the other one.
type done struct {
	operations.Handle
	closed *atomic.Int64
	end    func(error)
}

func (d done) Close() { d.closed.Add(1) }

func (done) ID() events.TaskID { return "done" }

func (d done) Wait(ctx context.Context) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	d.end(errOver)
	return []byte(`"a result"`), nil
}

var errOver = errors.New("the time is over")

// A task that does not end in time must not hide the outcome of one that has ended.
func TestAwait_TellsOfEachTaskItsOwnState(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	var out bytes.Buffer
	var closed atomic.Int64
	err := outcomes.Await(ctx, &out, false, []operations.Handle{pending{closed: &closed}, done{closed: &closed, end: end}})
	if out.String() != "\"a result\"\n" {
		t.Errorf("printed %q", out.String())
	}
	if !errors.Is(err, errOver) || err.Error() != "wait for pending: the time is over" {
		t.Errorf("got %v", err)
	}
	if closed.Load() != 2 {
		t.Errorf("%d of 2 handles are closed", closed.Load())
	}
}

// failing is a task that has failed.
type failing struct {
	operations.Handle
	err error
}

func (failing) Close()                                 {}
func (failing) ID() events.TaskID                      { return "failing" }
func (f failing) Wait(context.Context) ([]byte, error) { return nil, f.err }

func TestAwait_LeavesTheStackOfAPanicToGet(t *testing.T) {
	t.Parallel()
	failed := &task.Error{Task: "failing", Code: "panic", Message: "panic: boom\ngoroutine 7 [running]:\nmain.main()"}
	var out bytes.Buffer
	err := outcomes.Await(t.Context(), &out, false, []operations.Handle{failing{err: failed}})
	if got, is := errors.AsType[*task.Error](err); !is || got != failed ||
		err.Error() != "task failing: panic: panic: boom; get shows the stack" {
		t.Errorf("%v", err)
	}
}

func TestAwait_NamesTheFirstOfManyTasksThatTookTooLong(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancelCause(t.Context())
	end(errOver)
	var out bytes.Buffer
	var closed atomic.Int64
	err := outcomes.Await(ctx, &out, false, slices.Repeat([]operations.Handle{pending{closed: &closed}}, 7))
	if !errors.Is(err, errOver) ||
		err.Error() != "wait for pending, pending, pending, pending, pending and 2 more: the time is over" || closed.Load() != 7 {
		t.Errorf("%v, %d closed", err, closed.Load())
	}
}
