package sender

import (
	"context"

	"taskledger/events"
	"taskledger/store"
)

type callerKey struct{}

// WithCaller returns a context whose commands are sent on behalf of a caller.
func WithCaller(ctx context.Context, a events.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, a)
}

// CallerOf returns the caller of a context, nil for the client itself. It returns a *store.InvalidError for a caller
// that no event can hold.
func CallerOf(ctx context.Context) (*events.Caller, error) {
	a, ok := ctx.Value(callerKey{}).(events.Caller)
	if !ok || a == (events.Caller{}) {
		return nil, nil
	}
	if err := a.Validate(); err != nil {
		return nil, &store.InvalidError{Field: "caller", Problem: err.Error()}
	}
	valid := a // a itself stays out of the heap where there is no caller
	return &valid, nil
}
