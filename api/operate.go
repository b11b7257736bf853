package api

import (
	"net/http"

	"taskledger/api/operations"
)

// Reason gives the reason of a change.
type Reason struct {
	Reason string `json:"reason,omitempty"`
}

// verbs describes the verbs of a task that have a route of their own.
var verbs = map[operations.Verb]string{
	operations.Cancel:  "Cancel a task",
	operations.Suspend: "Keep a task from starting",
	operations.Resume:  "Let a suspended task go on",
	operations.Retry:   "Run a task again that has ended",
	operations.RunNow:  "Start a task now that waits for its time",
}

// operate returns the handler that changes one task.
func (s changes) operate(verb operations.Verb) func(*Call) error {
	return func(c *Call) error {
		var why Reason
		err := c.ReadOptional(&why)
		if err == nil {
			err = checkReason(why.Reason)
		}
		if err == nil {
			err = known(c.ctx, c, s.reader, c.id, verb)
		}
		anew := false
		if err == nil {
			anew, err = s.operator.Operate(c.ctx, verb, string(c.id), why.Reason)
		}
		switch {
		case err != nil:
			return err
		case anew:
			return c.JSON(http.StatusOK, ChangedTask{ID: c.id, NewLife: true})
		}
		return c.Done()
	}
}
