package shard

import (
	"context"
	"errors"
	"fmt"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// recall fills in what a finished task has left to the journal, as far as that is kept.
func (r *Loader) recall(ctx context.Context, shard int, t *projection.Task) (err error) {
	if t.ParamsElided && t.Params == nil {
		if t.Params, err = r.PayloadAt(ctx, shard, t.ParamsAt); err != nil && !errors.Is(err, store.ErrTrimmed) {
			return err
		}
	}
	if t.ResultElided {
		if t.Result, err = r.PayloadAt(ctx, shard, t.Outcome); err != nil && !errors.Is(err, store.ErrTrimmed) {
			return err
		}
	}
	if t.ErrorElided {
		return r.recallError(ctx, shard, t)
	}
	return nil
}

// recallError replaces the beginning of an error by the whole, as far as that is kept.
func (r *Loader) recallError(ctx context.Context, shard int, t *projection.Task) error {
	ev, err := r.Reader.Event(ctx, shard, t.Outcome)
	if errors.Is(err, store.ErrTrimmed) {
		return nil
	}
	if err != nil {
		return err
	}
	failed, ok := ev.Body.(*events.Failed)
	if !ok {
		return fmt.Errorf("%w: event %s is %s and carries no error", events.ErrDamaged, ev.Position, ev.Kind())
	}
	t.Error, t.ErrorElided = &failed.Error, false
	return nil
}

// PayloadAt reads the parameters or the result that an event carries.
func (r *Loader) PayloadAt(ctx context.Context, shard int, ref events.Ref) (events.Payload, error) {
	ev, err := r.Reader.Event(ctx, shard, ref)
	if err != nil {
		return nil, err
	}
	switch b := ev.Body.(type) {
	case *events.Created:
		return b.Params, nil
	case *events.Merged:
		return b.Params, nil
	case *events.Succeeded:
		return b.Result, nil
	}
	return nil, fmt.Errorf("%w: event %s is %s and carries no payload", events.ErrDamaged, ev.Position, ev.Kind())
}
