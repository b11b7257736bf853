package taskstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// held is an item that a worker holds.
type held struct {
	w       *Worker
	id      int64 // as the handler knows it
	current int64 // as it is after renewals
	item    *item.Item
}

// result holds the values that a handler has returned.
type result struct {
	update item.Update
	err    error
}

func (h *held) log() *slog.Logger {
	return h.w.o.Log.With("store", h.w.store.name, "group", h.w.group, "item", h.id)
}

// kept renews at once a claim that may have begun long ago, and reports whether the worker still holds the item.
func (h *held) kept(ctx context.Context, log *slog.Logger) bool {
	err := h.renew(ctx)
	if err != nil {
		log.Warn("The item was lost before its claim was answered", "error", err)
	}
	return err == nil
}

// work handles the item, unless it was claimed too often already: whoever had it then died, or was late each time.
func (h *held) work(ctx context.Context, log *slog.Logger) {
	if most := int64(h.w.o.MaxClaims); most > 0 && h.item.Claims > most {
		h.finish(ctx, result{err: fmt.Errorf("it was claimed %d times before, and none of those who had it came to an end", h.item.Claims-1)}, log)
		return
	}
	handed := *h.item
	if h.w.o.MaxClaims > 0 { // a failure keeps the data as claimed, whatever the handler makes of them
		handed.Data = bytes.Clone(h.item.Data)
	}
	h.run(ctx, &handed, log)
}

// run handles the item, and renews its claim meanwhile. It returns when the handler has.
func (h *held) run(ctx context.Context, it *item.Item, log *slog.Logger) {
	of, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	handled := make(chan result, 1)
	go h.w.call(of, it, handled)
	renew := time.NewTicker(h.w.o.Duration / 2)
	defer renew.Stop()
	for late := false; ; {
		select {
		case r := <-handled:
			if !late {
				h.finish(ctx, r, log)
			}
			return
		case <-renew.C:
			if late {
				continue
			}
			if err := h.renew(ctx); err != nil {
				late = true
				cancel(ErrLate)
				log.Warn("The item was lost while it was handled", "error", err)
			}
		}
	}
}

// call calls the handler, and makes errors of whatever else it does.
func (w *Worker) call(ctx context.Context, it *item.Item, handled chan<- result) {
	r := result{err: errors.New("the handler has ended its goroutine")}
	defer func() { // also then
		if v := recover(); v != nil {
			r = result{err: fmt.Errorf("the handler has panicked: %v\n%s", v, debug.Stack())}
		}
		handled <- r
	}()
	u, err := w.handle(ctx, it)
	r = result{u, err}
}

// upTo is a context in which to tell the store of an item: it outlives that of Run, since what was sent has to be
// known, and ends when the claim has ended for sure.
func (h *held) upTo(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), h.w.o.Duration)
}

// renew has the claim last for another duration. An update that is under way is not cancelled: nobody would know
// under which id the item is.
func (h *held) renew(ctx context.Context) error {
	ctx, cancel := h.upTo(ctx)
	defer cancel()
	made, err := h.w.store.Update(ctx,
		item.Update{Changes: []item.Change{{ID: h.current, Keep: true, At: later(h.w.o.Duration)}}})
	if err != nil {
		return err
	}
	h.current = made[0].ID
	return nil
}

// later is the time so long after the entry that decides.
func later(d time.Duration) item.When { return item.When(-d.Milliseconds()) }

// finish does what the handler wants, or releases the item.
func (h *held) finish(ctx context.Context, r result, log *slog.Logger) {
	stops := ctx.Err() != nil
	ctx, cancel := h.upTo(ctx)
	defer cancel()
	if r.err != nil {
		log.Warn("The handler of an item has failed", "error", r.err)
		if stops {
			h.release(ctx, 0, log)
		} else {
			h.failed(ctx, r.err, log)
		}
		return
	}
	_, err := h.w.store.Update(ctx, h.last(r.update))
	switch {
	case err == nil:
	case h.isLate(err):
		log.Warn("The item was lost before its work was done", "error", err)
	case errors.Is(err, task.ErrUnknown):
		log.Warn("Nobody knows whether the work of an item is done", "error", err)
	default:
		log.Warn("What the handler of an item wants was refused", "error", err)
		h.failed(ctx, err, log)
	}
}

// last is the update that ends the work on the item.
func (h *held) last(u item.Update) item.Update {
	u.Key = ""
	u.Depends, u.Deletes, u.Changes = slices.Clone(u.Depends), slices.Clone(u.Deletes), slices.Clone(u.Changes)
	goes := true
	for i, id := range u.Depends {
		if id == h.id {
			u.Depends[i] = h.current
		}
	}
	for i := range u.Changes {
		if u.Changes[i].ID == h.id {
			u.Changes[i].ID, goes = h.current, false
		}
	}
	for i, id := range u.Deletes {
		if id == h.id {
			u.Deletes[i], goes = h.current, false
		}
	}
	if goes {
		u.Deletes = append(u.Deletes, h.current)
	}
	return u
}

// isLate says that an update was refused since the item is not there, or held by another.
func (h *held) isLate(err error) bool {
	refused, is := errors.AsType[*item.ConflictError](err)
	return is && slices.ContainsFunc(refused.Problems, func(p item.Problem) bool {
		return p.ID == h.current && p.Field != "depends" && (p.Kind == item.NotThere || p.Kind == item.Held)
	})
}

// failed gives the item up if it was claimed as often as it may be, and else has it be available again.
func (h *held) failed(ctx context.Context, why error, log *slog.Logger) {
	if most := int64(h.w.o.MaxClaims); most == 0 || h.item.Claims < most || !h.giveUp(ctx, why, log) {
		h.retry(ctx, log)
	}
}

// giveUp moves the item to the group of failures, with its error. It reports whether nothing remains to be done.
func (h *held) giveUp(ctx context.Context, why error, log *slog.Logger) bool {
	f := Failure{Group: h.w.group, Claims: h.item.Claims, Error: why.Error(), Data: h.item.Data}
	_, err := h.w.store.Update(ctx,
		item.Update{Deletes: []int64{h.current}, Adds: []item.Add{{Group: h.w.o.Failures, Data: f.Encode()}}})
	switch {
	case err == nil:
		log.Error("The item has failed too often, and is given up",
			"claims", h.item.Claims, "failures", h.w.o.Failures, "error", why)
	case h.isLate(err), errors.Is(err, task.ErrUnknown):
		log.Warn("The item was lost before it was given up", "error", err)
	case isTooLarge(err):
		log.Error("The item has failed too often, and is too large to be given up: it waits for a day", "error", err)
		h.release(ctx, tooLargeAgain, log)
	default:
		log.Warn("The item has failed too often, and cannot be given up", "error", err)
		return false
	}
	return true
}

// tooLargeAgain is the time after which an item is tried again that has failed too often and whose data leave no room
// for its failure.
const tooLargeAgain = 24 * time.Hour

func isTooLarge(err error) bool {
	_, is := errors.AsType[*store.InvalidError](err) // the failure breaks no other limit
	return is && !isClock(err)
}

// retry has the item be available again after RetryAfter.
func (h *held) retry(ctx context.Context, log *slog.Logger) {
	if h.w.o.RetryAfter > 0 { // else when the claim ends, of itself
		h.release(ctx, h.w.o.RetryAfter, log)
	}
}

// release has the item be available again after a time.
func (h *held) release(ctx context.Context, after time.Duration, log *slog.Logger) {
	if _, err := h.w.store.Update(ctx, item.Update{Changes: []item.Change{{ID: h.current, Keep: true, At: later(after)}}}); err != nil {
		log.Warn("The item cannot be released: it is available again when its claim ends", "error", err)
	}
}
