package task

import "context"

type awaitsNodes struct{}

// AwaitNodes makes calls with the context wait while no node is alive, for as long as the context lasts. Without it
// they end within 3 s, with an error that wraps ErrNoNode.
func AwaitNodes(ctx context.Context) context.Context {
	return context.WithValue(ctx, awaitsNodes{}, true)
}

// AwaitsNodes reports whether calls with the context wait while no node is alive.
func AwaitsNodes(ctx context.Context) bool { return ctx.Value(awaitsNodes{}) != nil }
