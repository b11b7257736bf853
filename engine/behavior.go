package engine

import "context"

type clientKey struct{}

// ClientFromContext returns the client of the node that makes the attempt, for a behavior that submits further
// tasks and waits for their outcomes. It returns false if ctx belongs to no attempt.
func ClientFromContext(ctx context.Context) (*Client, bool) {
	c, ok := ctx.Value(clientKey{}).(*Client)
	return c, ok
}
