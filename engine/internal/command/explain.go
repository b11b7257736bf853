package command

import (
	"taskledger/events"
)

// Explain asks why a task does not run.
type Explain struct{ Task events.TaskID }

func (*Explain) Op() uint64 { return opExplain }

func (c *Explain) Shard(count int) int { return c.Task.Shard(count) }

func (c *Explain) Size() int { return 64 + len(c.Task) }

func (c *Explain) Limits() error { return limitID(c.Task) }
