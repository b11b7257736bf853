package command

import (
	"taskledger/events"
	"taskledger/projection"
)

// List reads tasks in id order, those after an id that match a Filter of these fields.
type List struct {
	Status                   uint64 // a projection.Status
	Behavior, Affinity, Node string
	Limit                    int64
	After                    events.TaskID
}

var _ = register(opList, func() Command { return new(List) })

func (*List) Op() uint64 { return opList }

func (*List) Size() int { return 512 }

func (c *List) Matches(t *projection.Task) bool {
	return (c.Status == 0 || c.Status == uint64(t.Status)) && (c.Behavior == "" || c.Behavior == t.Kind.Behavior) &&
		(c.Affinity == "" || c.Affinity == t.ID.Affinity()) && (c.Node == "" || c.Node == t.Node)
}
