package drivers

import (
	"context"
	"encoding/json"
)

// Driver brings collections up to date. It is called concurrently, for one collection once at a time unless its
// schedule lets runs overlap; after a node was lost, a run may still go on there.
type Driver interface {
	// Sync returns when the collection is up to date, or ctx has ended. behaviors.Attempt gives the attempt that ctx
	// belongs to, with its log. An error is a failure, which is retried by the policy of the task: behaviors.Cancel,
	// RetryAfter and Code say otherwise.
	Sync(ctx context.Context, run Run) error
}

// Run names what is to be brought up to date.
type Run struct {
	Source     string
	Collection string
	Params     json.RawMessage // as the file of collections has them; nil = none
}
