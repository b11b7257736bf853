package command

import (
	"fmt"
	"math"

	"taskledger/events"
)

// Await asks for the outcome of a run.
type Await struct {
	Task events.TaskID
	Life events.Ref // 0 = the present life
	Run  uint64     // at most math.MaxUint32; 0 = the present run, or the last one when none is due
}

func (*Await) Op() uint64 { return opAwait }

func (c *Await) Shard(count int) int { return c.Task.Shard(count) }

func (c *Await) Size() int { return 64 + len(c.Task) }

func (c *Await) Limits() error { return limitID(c.Task) }

// Check refuses a run that no task can have.
func (c *Await) Check() error {
	if c.Run > math.MaxUint32 {
		return fmt.Errorf("run %d", c.Run)
	}
	return nil
}
