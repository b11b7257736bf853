package engine

import (
	"context"

	"taskledger/engine/internal/sender"
	"taskledger/events"
)

// WithAsker puts the caller of a service beside every command that is sent with the context, so that the journal
// tells who asked: the asker's principal takes the place of the client's, and its request id and traceparent stand
// in every event that the command causes. A command is refused with a *store.InvalidError when a text of the asker is
// too long (256 bytes) or no UTF-8. It changes nothing of what the caller may do.
func WithAsker(ctx context.Context, a events.Asker) context.Context { return sender.WithAsker(ctx, a) }
