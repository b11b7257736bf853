package engine

import (
	"taskledger/events"
	"taskledger/projection"
)

// listCommand reads tasks in id order, those after an id that match a Filter of these fields.
type listCommand struct {
	Status                   uint64 // a projection.Status
	Behavior, Affinity, Node string
	Limit                    int64
	After                    events.TaskID
}

func (*listCommand) op() uint64 { return opList }

func (*listCommand) size() int { return 512 }

func (c *listCommand) matches(t *projection.Task) bool {
	return (c.Status == 0 || c.Status == uint64(t.Status)) && (c.Behavior == "" || c.Behavior == t.Kind.Behavior) &&
		(c.Affinity == "" || c.Affinity == t.ID.Affinity()) && (c.Node == "" || c.Node == t.Node)
}
