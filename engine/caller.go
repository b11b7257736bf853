package engine

import (
	"context"

	"taskledger/engine/internal/sender"
	"taskledger/events"
)

// WithCaller puts the caller of a service beside every command that is sent with the context, so that the journal
// shows who asked: the caller's principal replaces the client's, and its request id and traceparent stand in every
// event that the command causes. A command is refused with a *store.InvalidError when one of these texts is too
// long (256 bytes) or no UTF-8. The caller may do what the client may do.
func WithCaller(ctx context.Context, a events.Caller) context.Context {
	return sender.WithCaller(ctx, a)
}
