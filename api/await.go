package api

import (
	"errors"
	"time"

	"taskledger/api/operations"
	"taskledger/api/view"
	"taskledger/task"
)

// await waits for an outcome, closes the handle, and reports whether there is one. Whatever else ends the wait is no
// failure of the request: the task is there.
func await(c *Call, h operations.Handle, wait time.Duration, into *view.Outcome) bool {
	defer h.Close()
	ctx, cancel := c.withTimeout(wait)
	defer cancel()
	result, err := h.Wait(ctx)
	failed, is := errors.AsType[*task.Error](err)
	if err != nil && !is {
		return false
	}
	*into = view.OfOutcome(h.ID(), result, failed)
	return true
}
