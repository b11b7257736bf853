package taskstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// ErrLate is the cause with which the context of a Handler ends once its item is gone or belongs to another client:
// what the Handler returns then is dropped.
var ErrLate = errors.New("the item is no longer the worker's")

// Handler does the work of an item. What it returns is done in one update that also deletes the item: Depends,
// Deletes, Changes and Adds. The id of the item, as the handler has it, stands for whatever its id is by then: in
// Changes it has the item changed instead of deleted, and in Depends or Deletes it says what is so anyway.
//
// An item whose handler returns an error or panics is available again after RetryAfter, or at once if Run's context
// has ended, since the worker stops and the item is not at fault. If the update is refused, the item is available
// again after RetryAfter. It may be handled twice, by two workers at once if one was late, but the update of only
// one of them is done.
//
// The context ends with the cause ErrLate when the item is no longer the worker's, and with that of Run.
type Handler func(ctx context.Context, it *item.Item) (item.Update, error)

// WorkerOptions of NewWorker.
type WorkerOptions struct {
	// Slots is the number of items handled at once, 1 to 1,000; default 1.
	Slots int
	// Duration is the time for which an item is claimed: 100 ms to 24 h, default DefaultDuration. At half of it the
	// claim is renewed, as long as the handler runs. When a worker dies its items are available again after this time.
	Duration time.Duration
	// RetryAfter is the time from the failure of a handler until its item is available again: 1 ms to 24 h. Default:
	// until its claim ends.
	RetryAfter time.Duration
	// MaxClaims bounds the claims of an item: if it fails with that claim, or was claimed more often since workers
	// died or were late, it is moved to the group Failures, with its error, as a Failure. Claims count anew from 0
	// when a change gives an item other data. Default: any number.
	MaxClaims int
	// Failures is the group of what has failed too often. Default: that of the worker with "/err" behind it.
	Failures string
	// Log hears of failures of handlers, and of items that were lost. Default: slog.Default().
	Log *slog.Logger
}

// Limits of WorkerOptions.
const (
	MaxSlots          = 1_000
	MinWorkerDuration = 100 * time.Millisecond
)

// unheardWithin bounds how long a worker that stops tries to release the items that it has claimed.
const unheardWithin = 2 * time.Second

// clockPause is the pause of a worker whose clock, or that of the store's owner, is taken for wrong.
const clockPause = 10 * time.Second

// Worker claims the items of a group and gives each to a handler. It never drops one: an item goes away when its
// handler has succeeded, or with MaxClaims to another group.
type Worker struct {
	store  *Store
	group  string
	handle Handler
	o      WorkerOptions
	looks  chan struct{} // places of those that look for an item
}

// NewWorker returns a worker of a group of a store. It starts nothing.
func NewWorker(s *Store, group string, handle Handler, o WorkerOptions) (*Worker, error) {
	o.Slots, o.Duration = cmp.Or(o.Slots, 1), cmp.Or(o.Duration, DefaultDuration)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	bad := func(field, format string, args ...any) (*Worker, error) {
		return nil, &store.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case s == nil:
		return bad("store", "nil: want one to claim from")
	case handle == nil:
		return bad("handler", "nil: want a function")
	case o.Slots < 1 || o.Slots > MaxSlots:
		return bad("slots", "%d, want 1 to %d", o.Slots, MaxSlots)
	case o.MaxClaims < 0:
		return bad("max claims", "%d, want 1 or more, or 0 for any number", o.MaxClaims)
	case o.Duration < MinWorkerDuration || o.Duration > item.MaxDuration:
		return bad("duration", "%s, want %s to %s", o.Duration, MinWorkerDuration, item.MaxDuration)
	case o.RetryAfter != 0 && (o.RetryAfter < time.Millisecond || o.RetryAfter > item.MaxDuration):
		return bad("retry after", "%s, want 1ms to %s, or 0 for the end of the claim", o.RetryAfter, item.MaxDuration)
	}
	if err := item.ValidateGroup(group); err != nil {
		return nil, err
	}
	if o.Failures = cmp.Or(o.Failures, group+"/err"); o.MaxClaims > 0 {
		if err := item.ValidateGroup(o.Failures); err != nil {
			return nil, fmt.Errorf("failures: %w", err)
		}
		if o.Failures == group {
			return bad("failures", "%q: want another group than that of the worker", group)
		}
	}
	repeats := *s
	repeats.once = false
	return &Worker{&repeats, group, handle, o, make(chan struct{}, waitsAtOnce)}, nil
}

// Run claims and handles items until ctx ends, or the store refuses to be asked: it is closed, or the caller may not.
// While the owner of the store refuses claims because the two clocks differ, Run says so in the log, and claims again
// every 10 s. It waits for the handlers, whose contexts end with ctx, and for the updates of those that return in time:
// at most for the duration of a claim, if the cluster does not answer. It returns nil if ctx has ended.
//
// When it stops, the items of handlers that fail are released at once. So is an item that was claimed as ctx ended:
// a claim whose answer was lost is asked again under its key, for 2 s at most. If the cluster does not answer in
// that time, the item is available again when the claim ends.
func (w *Worker) Run(ctx context.Context) error {
	g, of := errgroup.WithContext(ctx)
	for range w.o.Slots {
		g.Go(func() error { return w.work(of) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("worker of group %s: %w", w.group, err)
	}
	return nil
}

// mayLook waits for one of the places of those that look for an item: where none comes more of them would only ask
// again and again. It returns false when ctx ends.
func (w *Worker) mayLook(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case w.looks <- struct{}{}:
	}
	if ctx.Err() != nil {
		<-w.looks
		return false
	}
	return true
}

// work handles one item after the other.
func (w *Worker) work(ctx context.Context) error {
	pause := firstPause
	for w.mayLook(ctx) {
		c := item.Claim{Group: w.group, Duration: w.o.Duration, Wait: DefaultWait}
		asked := time.Now()
		it, late, err := w.store.claim(ctx, &c)
		<-w.looks
		switch _, lost := errors.AsType[*item.ConflictError](err); {
		case ctx.Err() != nil:
			w.unclaim(ctx, c, it, err)
			return nil
		case lost: // the answer came too late: the item is another's by now
		case isClock(err):
			w.o.Log.Warn("No item is claimed while the clock is wrong", "store", w.store.name, "group", w.group, "error", err)
			_ = sleep(ctx, clockPause)
		case err != nil:
			return err
		case it != nil:
			pause = firstPause
			h := &held{w: w, id: it.ID, current: it.ID, item: it}
			if log := h.log(); !late || h.kept(ctx, log) {
				h.work(ctx, log)
			}
		case time.Since(asked) < DefaultWait/2: // nobody waited: the node drains
			_ = rest(ctx, &pause, nil)
		}
	}
	return nil
}

// unclaim releases what a claim got that was under way when ctx ended. A claim whose outcome is unknown is answered
// again by its key.
func (w *Worker) unclaim(ctx context.Context, c item.Claim, it *item.Item, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unheardWithin)
	defer cancel()
	log := w.o.Log.With("store", w.store.name, "group", w.group)
	if errors.Is(err, task.ErrUnknown) {
		c.Wait = 0
		if it, _, err = w.store.claim(ctx, &c); err != nil {
			log.Warn("An item may be claimed until its claim ends", "error", err)
		}
	}
	if it != nil {
		(&held{w: w, id: it.ID, current: it.ID}).release(ctx, 0, log)
	}
}
