package testcluster

import (
	"context"
	"errors"

	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// UntilAnswered repeats a call of a store with its key until its outcome is known: an unknown one is no failure.
func UntilAnswered(ctx context.Context, call func(context.Context) error) error {
	for {
		err := call(ctx)
		var conflict *item.ConflictError
		if err == nil || errors.As(err, &conflict) || ctx.Err() != nil {
			return err
		}
		var overload *task.OverloadError
		if !errors.Is(err, task.ErrUnknown) && !errors.Is(err, store.ErrUnavailable) && !errors.As(err, &overload) {
			return err
		}
	}
}
