// Package asker carries the caller of a service, for whom a command is sent, in a context.
package asker

import (
	"context"

	"taskledger/events"
	"taskledger/store"
)

type key struct{}

// With returns a context whose commands the asker asked for.
func With(ctx context.Context, a events.Asker) context.Context {
	return context.WithValue(ctx, key{}, a)
}

// Of returns who asks with the context, nil for the client itself. It returns an *store.InvalidError for an asker that no event can hold.
func Of(ctx context.Context) (*events.Asker, error) {
	a, ok := ctx.Value(key{}).(events.Asker)
	if !ok || a == (events.Asker{}) {
		return nil, nil
	}
	if err := a.Validate(); err != nil {
		return nil, &store.InvalidError{Field: "asker", Problem: err.Error()}
	}
	valid := a // a itself stays out of the heap where nobody asks
	return &valid, nil
}
