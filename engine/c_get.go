package engine

import (
	"taskledger/events"
)

// getCommand reads a task.
type getCommand struct {
	Task   events.TaskID
	Linear bool // the answer waits for a proof of ownership
}

func (*getCommand) op() uint64 { return opGet }

func (c *getCommand) size() int { return 64 + len(c.Task) }
