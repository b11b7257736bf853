package sender

import (
	"context"

	"taskledger/events"
	"taskledger/store"
)

type askerKey struct{}

// WithAsker returns a context whose commands are sent on behalf of a caller.
func WithAsker(ctx context.Context, a events.Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// AskerOf returns the caller of a context, nil for the client itself. It returns a *store.InvalidError for a caller
// that no event can hold.
func AskerOf(ctx context.Context) (*events.Asker, error) {
	a, ok := ctx.Value(askerKey{}).(events.Asker)
	if !ok || a == (events.Asker{}) {
		return nil, nil
	}
	if err := a.Validate(); err != nil {
		return nil, &store.InvalidError{Field: "asker", Problem: err.Error()}
	}
	valid := a // a itself stays out of the heap where there is no caller
	return &valid, nil
}
