package taskstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// ErrLate is the cause by which the context of a handler ends whose task somebody else has, or that is gone.
var ErrLate = errors.New("the task is no longer this worker's")

// errPanicked is what a handler returns that panicked or ended its goroutine.
var errPanicked = errors.New("the handler panicked")

// Changer is what a worker needs of a store: a *Store, or one over HTTP.
type Changer interface {
	Update(ctx context.Context, u *item.Update) ([]item.Item, error)
	Claim(ctx context.Context, c *item.Claim) (*item.Item, error)
}

// Worker claims the tasks of a group and calls a handler for each. It renews a claim at half its time, without the data, while the handler runs.
type Worker struct {
	Store Changer
	Group string
	// Handle works on a task until ctx ends. The task is deleted in one update with what Handle returns, nil = nothing else; Client and Key of
	// that are the worker's. After an error or a panic the task is released after RetryAfter, never deleted.
	Handle     func(ctx context.Context, of *item.Item) (*item.Update, error)
	Duration   time.Duration // of a claim; default 30s, at least 100ms
	RetryAfter time.Duration // after a failure; 0 = when the claim ends
	Slots      int           // tasks at once; default 1
	Log        *slog.Logger  // default: none
}

const (
	defaultDuration = 30 * time.Second
	leastDuration   = 100 * time.Millisecond
	claimAgain      = time.Second // after a claim that failed
)

// Run works until ctx ends, and returns nil; its handlers have returned by then, and what they did was recorded. It returns an error if the worker
// cannot work at all, for what it was given.
func (w *Worker) Run(ctx context.Context) error {
	own := *w
	own.Duration, own.Slots = cmp.Or(w.Duration, defaultDuration), cmp.Or(w.Slots, 1)
	if own.Log == nil {
		own.Log = slog.New(slog.DiscardHandler)
	}
	switch err := item.ValidateGroup(w.Group); {
	case err != nil:
		return fmt.Errorf("worker: %w", err)
	case own.Store == nil || own.Handle == nil:
		return &events.InvalidError{Field: "worker", Problem: "want Store and Handle"}
	case own.Duration < leastDuration || own.Duration > item.MaxDuration:
		return &events.InvalidError{Field: "worker: duration", Problem: fmt.Sprintf("%s, want %s to %s", own.Duration, leastDuration, item.MaxDuration)}
	case own.Slots < 0 || own.RetryAfter < 0:
		return &events.InvalidError{Field: "worker", Problem: "slots or retry-after below 0"}
	}
	var all sync.WaitGroup
	errs := make([]error, own.Slots)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for i := range errs {
		all.Go(func() {
			if errs[i] = own.slot(ctx); errs[i] != nil {
				stop()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// slot works on one task after the other until ctx ends.
func (w *Worker) slot(ctx context.Context) error {
	for ctx.Err() == nil {
		claimed, err := w.Store.Claim(ctx, &item.Claim{Group: w.Group, Duration: w.Duration, Wait: item.MaxWait})
		var invalid *events.InvalidError
		switch {
		case ctx.Err() != nil && claimed == nil:
			return nil
		case errors.As(err, &invalid):
			return fmt.Errorf("claim a task of group %q: %w", w.Group, err)
		case err != nil:
			w.Log.WarnContext(ctx, "no task can be claimed", "group", w.Group, "err", err)
			pause(ctx, claimAgain)
		case claimed != nil:
			w.work(ctx, claimed)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// work calls the handler for a task that is claimed, and records what it did.
func (w *Worker) work(ctx context.Context, of *item.Item) {
	handling, end := context.WithCancelCause(ctx)
	defer end(nil)
	id := of.ID
	over, renewed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(renewed)
		id = w.renew(ctx, id, over, func() { end(ErrLate) })
	}()
	done, err := w.handle(handling, of)
	close(over)
	<-renewed
	switch late := errors.Is(context.Cause(handling), ErrLate); {
	case late:
		w.Log.WarnContext(ctx, "a task was lost to another worker, or deleted, while it was worked on", "task", of.ID)
	case err != nil:
		w.Log.WarnContext(ctx, "a task has failed", "task", of.ID, "err", err)
		if w.RetryAfter > 0 {
			w.record(ctx, "release", &item.Update{Changes: []item.Change{{ID: id, Keep: true, At: item.When(-w.RetryAfter.Milliseconds())}}})
		}
	default:
		finish := item.Update{Deletes: []int64{id}}
		if done != nil {
			finish.Depends, finish.Changes, finish.Adds = done.Depends, done.Changes, done.Adds
			finish.Deletes = append(finish.Deletes, done.Deletes...)
		}
		w.record(ctx, "finish", &finish)
	}
}

// handle calls the handler. What is deferred runs for a panic and for runtime.Goexit alike.
func (w *Worker) handle(ctx context.Context, of *item.Item) (done *item.Update, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = errPanicked
		defer func() {
			if problem := recover(); problem != nil {
				err = fmt.Errorf("%w: %v", errPanicked, problem)
			}
		}()
		own := *of
		done, err = w.Handle(ctx, &own)
	}()
	<-ended
	return done, err
}

// record makes an update that is to be made although ctx has ended.
func (w *Worker) record(ctx context.Context, what string, u *item.Update) {
	recording, done := context.WithTimeout(context.WithoutCancel(ctx), w.Duration)
	defer done()
	u.Key = rand.Text()
	_, err := w.Store.Update(recording, u)
	for ; unanswered(err) && recording.Err() == nil; _, err = w.Store.Update(recording, u) {
		pause(recording, claimAgain)
	}
	if err != nil {
		w.Log.WarnContext(ctx, "what a worker did is not recorded, and the task will be worked on again", "what", what, "err", err)
	}
}

// unanswered reports an error after which nobody knows whether an update was made.
func unanswered(err error) bool {
	return errors.Is(err, task.ErrUnknown) || errors.Is(err, store.ErrUnavailable)
}

// renew keeps the claim of a task until over is closed, and returns its last id. A renewal that is under way is not given up: it may be made. late is
// called when the task is gone.
func (w *Worker) renew(ctx context.Context, id int64, over <-chan struct{}, late func()) int64 {
	half := time.NewTicker(w.Duration / 2)
	defer half.Stop()
	var renewal *item.Update // that was not answered: its key finds out whether it was made
	for {
		select {
		case <-over:
			return id
		case <-half.C:
		}
		if renewal == nil {
			renewal = &item.Update{Key: rand.Text(), Changes: []item.Change{{ID: id, Keep: true, At: item.When(-w.Duration.Milliseconds())}}}
		}
		renewing, done := context.WithTimeout(context.WithoutCancel(ctx), w.Duration)
		made, err := w.Store.Update(renewing, renewal)
		done()
		var conflict *item.ConflictError
		switch {
		case err == nil:
			id, renewal = made[0].ID, nil
		case errors.As(err, &conflict):
			late()
			return id
		default:
			w.Log.WarnContext(ctx, "a claim cannot be renewed", "task", id, "err", err)
		}
	}
}
