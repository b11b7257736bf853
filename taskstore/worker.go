package taskstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"taskledger/item"
)

// Handler does the work of an item, and returns what its end changes besides, nil for nothing. The item is deleted by the same update, unless
// this is about it: Changes, Deletes and Depends name the item by the id that the handler was given, whatever it is by now.
//
// ctx ends with ErrLost once the item is no longer the worker's, and when Run's ends. The item of a handler that fails or panics is released.
type Handler func(ctx context.Context, it *Item) (*Update, error)

// ErrLost is the cause of a handler's context when its item's id is gone: another has it, or has deleted it. What the handler returns is dropped.
var ErrLost = errors.New("the item is no longer the worker's")

// WorkerConfig says what a Worker does.
type WorkerConfig struct {
	Store   *Store
	Group   string
	Handler Handler
	// Duration is that of a claim, which is renewed after half of it: 10 ms to 24 h, default 30 s.
	Duration time.Duration
	// RetryAfter is when the item of a handler that failed is available again, at most 24 h. Default: when its claim ends.
	RetryAfter time.Duration
	Log        *slog.Logger // default: slog.Default
}

const (
	defaultDuration = 30 * time.Second
	minDuration     = 10 * time.Millisecond
	// claimWait is how long one claim waits for an item.
	claimWait = 30 * time.Second
	// stopPatience is how long a call about a claimed item goes on after Run's context has ended.
	stopPatience = 10 * time.Second
	// claimPatience is how long it is asked then what a claim got that was under way.
	claimPatience = 2 * time.Second
)

// Worker claims items of a group, one at a time, and has a handler work on them. Several may run beside each other.
type Worker struct {
	cfg   WorkerConfig
	store *Store
	log   *slog.Logger
}

// NewWorker returns a worker, which does nothing before Run.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	switch {
	case cfg.Store == nil:
		return nil, &InvalidError{Field: "store", Problem: "missing"}
	case cfg.Handler == nil:
		return nil, &InvalidError{Field: "handler", Problem: "missing"}
	case cfg.Duration != 0 && (cfg.Duration < minDuration || cfg.Duration > item.MaxDuration):
		return nil, &InvalidError{Field: "duration", Problem: fmt.Sprintf("%s, want %s to %s", cfg.Duration, minDuration, item.MaxDuration)}
	case cfg.RetryAfter < 0 || cfg.RetryAfter > item.MaxDuration:
		return nil, &InvalidError{Field: "retry_after", Problem: fmt.Sprintf("%s, want 0 to %s", cfg.RetryAfter, item.MaxDuration)}
	}
	if err := item.ValidateGroup(cfg.Group); err != nil {
		return nil, err
	}
	if cfg.Duration == 0 {
		cfg.Duration = defaultDuration
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Worker{cfg: cfg, store: cfg.Store.repeating(), log: cfg.Log.With("store", cfg.Store.name, "group", cfg.Group)}, nil
}

// Run works until ctx ends, and returns nil then, or why it cannot go on. Nothing of it is left when it returns: it waits for the handler, and
// for what was asked about its item, the latter for 10 s at most. What it claimed and did not finish is released.
func (w *Worker) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		c := &Claim{Key: rand.Text(), Group: w.cfg.Group, Duration: w.cfg.Duration, Wait: claimWait}
		it, err := w.store.Claim(ctx, c)
		_, gone := errors.AsType[*ConflictError](err)
		switch {
		case err != nil && ctx.Err() != nil:
			if errors.Is(err, ErrUnknown) {
				w.unclaim(ctx, c)
			}
			return nil
		case gone: // a claim whose answer was lost, and whose item is another one's by now
		case err != nil:
			return fmt.Errorf("claim from group %q: %w", w.cfg.Group, err)
		case it != nil:
			w.work(ctx, it)
		}
	}
	return nil
}

// unclaim gives back what a claim got whose answer the worker did not wait for: by its key the claim is answered again.
func (w *Worker) unclaim(ctx context.Context, c *Claim) {
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimPatience)
	defer cancel()
	c.Wait = 0
	if it, err := w.store.Claim(asked, c); err != nil {
		w.log.Warn("an item may be held until its claim ends", "err", err)
	} else if it != nil {
		w.release(ctx, it.ID)
	}
}

// work has the handler work on an item, and finishes it or gives it back.
func (w *Worker) work(ctx context.Context, it *Item) {
	l := w.keep(ctx, it)
	more, err := w.handle(l.ctx, it)
	id := l.stop()
	if id == 0 {
		w.log.Warn("item was lost: what was done is dropped", "item", it.ID, "cause", context.Cause(l.ctx))
		return
	}
	if err == nil {
		if err = w.finish(ctx, it.ID, id, more); err == nil {
			return
		}
	}
	w.log.Warn("item is given back", "item", it.ID, "err", err)
	w.release(ctx, id)
}

// handle runs the handler; a panic is an error.
func (w *Worker) handle(ctx context.Context, it *Item) (u *Update, err error) {
	defer func() {
		if p := recover(); p != nil {
			u, err = nil, fmt.Errorf("handler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	given := *it
	return w.cfg.Handler(ctx, &given)
}

// finish applies what a handler asks for, by the id that the item has now, and deletes it unless the handler did otherwise.
func (w *Worker) finish(ctx context.Context, given, id int64, more *Update) error {
	var u Update
	if more != nil {
		u = *more
	}
	u.Deletes, u.Depends, u.Changes = slices.Clone(u.Deletes), slices.Clone(u.Depends), slices.Clone(u.Changes)
	kept := false
	for i := range u.Changes {
		if u.Changes[i].ID == given {
			u.Changes[i].ID, kept = id, true
		}
	}
	for _, all := range [][]int64{u.Deletes, u.Depends} {
		for i := range all {
			if all[i] == given {
				all[i] = id
			}
		}
	}
	if !kept && !slices.Contains(u.Deletes, id) {
		u.Deletes = append(u.Deletes, id)
	}
	u.Client = w.store.client // it owns the item, and its keys are this store's
	_, err := w.update(ctx, &u)
	return err
}

// release makes an item available after RetryAfter, or at once if the worker stops: then it was no fault of the item's.
func (w *Worker) release(ctx context.Context, id int64) {
	after := w.cfg.RetryAfter
	switch {
	case ctx.Err() != nil:
		after = 0
	case after == 0:
		return // its claim ends
	}
	u := &Update{Changes: []Change{{ID: id, At: When(-after.Milliseconds()), Keep: true}}}
	if _, err := w.update(ctx, u); err != nil {
		w.log.Warn("item is not released before its claim ends", "item", id, "err", err)
	}
}

// update asks for a change of a claimed item until its outcome is known, for as long as a claim at most, also when the worker stops.
func (w *Worker) update(ctx context.Context, u *Update) ([]Item, error) {
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.Duration+stopPatience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-asked.Done():
		case <-time.After(stopPatience):
			cancel()
		}
	})()
	return w.store.Update(asked, u)
}
