package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"taskledger/api"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
)

// handle implements operations.Handle: it asks for its task again and again, as long as each answer may be waited for.
type handle struct {
	*link
	historian *ledger.Ledger
	id        events.TaskID
	joined    bool
	repeated  bool
	// fresh says that the submit has made the task: each run that has ended is one that it was promised.
	fresh bool
	// failed holds the error of a submit that was refused; nil = it was taken.
	failed error

	closing sync.Once
	closed  chan struct{} // made by the first Wait or Close
	made    sync.Once
}

const (
	shortestWait = 500 * time.Millisecond
	// restAfter is the pause after an answer that came early, and restLongest the longest one that an answer may ask for.
	restAfter   = time.Second
	restLongest = 30 * time.Second
)

// ID implements operations.Handle.
func (h *handle) ID() events.TaskID { return h.id }

// Joined implements operations.Handle.
func (h *handle) Joined() bool { return h.joined }

// Repeated implements operations.Handle.
func (h *handle) Repeated() bool { return h.repeated }

func (h *handle) end() chan struct{} {
	h.made.Do(func() { h.closed = make(chan struct{}) })
	return h.closed
}

// Close implements operations.Handle.
func (h *handle) Close() { h.closing.Do(func() { close(h.end()) }) }

// Wait implements operations.Handle.
func (h *handle) Wait(ctx context.Context) ([]byte, error) {
	if h.failed != nil {
		return nil, h.failed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-h.end():
			cancel(task.ErrClosed)
		case <-done:
		}
	}()
	t, err := h.await(ctx)
	if err != nil {
		if ended := context.Cause(ctx); ended != nil {
			return nil, ended
		}
		return nil, err
	}
	return h.outcome(ctx, &t)
}

// await returns the task once the run has ended that the handle is of.
func (h *handle) await(ctx context.Context) (t task.Task, err error) {
	path, err := pathOf(h.id, "")
	if err != nil {
		return t, err
	}
	runs, known := uint32(0), h.fresh
	// The API waits for the end of the run that is there when it begins to: one that has ended just before is seen when
	// the answer comes. So waits are short at first.
	for wait := time.Duration(0); ; wait = min(max(2*wait, shortestWait), api.MaxWait) {
		asked := time.Now()
		now, ended, rest, err := h.look(ctx, path, wait)
		switch over, is := errors.AsType[*task.OverloadError](err); {
		case is:
			rest = min(cmp.Or(over.RetryAfter, restAfter), restLongest)
		case errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil: // its node may be starting again
		case err != nil:
			return t, err
		case ended || now.Final() || known && now.Runs > runs:
			return now, nil
		default:
			runs, known = now.Runs, true
			if time.Since(asked) >= wait/2 { // else the node ends
				continue
			}
		}
		if err := pause(ctx, rest); err != nil {
			return t, err
		}
	}
}

// look asks for the task, and reports whether its run has ended meanwhile.
func (h *handle) look(
	ctx context.Context, path string, wait time.Duration,
) (t task.Task, ended bool, rest time.Duration, err error) {
	q := newParams()
	q.flag("forgotten", true)
	if wait > 0 {
		q.text("wait", wait.String())
	}
	a, err := h.ask(ctx, request{
		does:   "wait",
		method: http.MethodGet,
		path:   path,
		query:  q.Values,
		wait:   wait,
	}, &t)
	return t, wait > 0 && a.status == http.StatusOK, restAfter, err
}

func pause(ctx context.Context, d time.Duration) error {
	rest := time.NewTimer(d)
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-rest.C:
		return nil
	}
}

// outcome returns how the last run of the task ended.
func (h *handle) outcome(ctx context.Context, t *task.Task) ([]byte, error) {
	switch t.Status {
	case task.Success:
		return resultOf(t.Result), nil
	case task.Failure:
		return nil, h.failure(int(t.Attempt), t.Error)
	}
	return h.recorded(ctx) // a further run has begun
}

func resultOf(text json.RawMessage) []byte {
	if len(text) == 0 {
		return nil
	}
	return text
}

func (h *handle) failure(attempt int, e *events.Error) error {
	failed := &task.Error{Task: h.id, Attempt: attempt}
	if e != nil {
		failed.Code, failed.Message = e.Code, e.Message
		failed.Retryable, failed.Properties = e.Retryable, e.Properties
	}
	return failed
}

// recorded reads the outcome of the last run that has ended in the history of the task.
func (h *handle) recorded(ctx context.Context) ([]byte, error) {
	var failed *events.Failed
	for page, err := range h.historian.HistoryPages(ctx, h.id, ledger.HistoryOptions{Newest: true}) {
		if err != nil {
			return nil, fmt.Errorf("wait: %w", err)
		}
		for _, e := range page.Events {
			switch b := e.Body.(type) {
			case *events.Succeeded:
				return resultOf(events.Payload(b.Result).Readable()), nil
			case *events.Failed:
				if b.Run != 0 && failed == nil {
					failed = b
				}
			case *events.Started:
				if failed != nil {
					return nil, h.failure(int(b.Attempt), &failed.Error)
				}
			}
		}
	}
	if failed != nil { // without an attempt
		return nil, h.failure(0, &failed.Error)
	}
	return nil, fmt.Errorf("wait: %w: the history of %s has no outcome", task.ErrNotFound, h.id)
}
