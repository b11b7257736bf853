package command

import (
	"cmp"
	"fmt"

	"taskledger/events"
)

// Plan asks a node that has the behavior's code where and when a task belongs, and with Merge what the parameters
// of a second submit come to.
type Plan struct {
	Behavior string
	Params   []byte
	Merge    bool
	Stored   []byte
}

func (*Plan) Op() uint64 { return opPlan }

func (c *Plan) Size() int { return 96 + len(c.Params) + len(c.Stored) }

func (c *Plan) Limits() error {
	return cmp.Or(
		limitBehavior(c.Behavior),
		atMost("parameters", len(c.Params), events.MaxPayloadBytes),
		atMost("stored parameters", len(c.Stored), events.MaxPayloadBytes),
	)
}

// MaxPlanners bounds the nodes that a PlanMessage asks: where so many do not answer, more would not. Each of them
// reads all their names.
const MaxPlanners = 1000

// PlanMessage asks some of the nodes for a plan.
type PlanMessage struct {
	Planners []string // their sessions, MaxPlanners at most
	Plan     Plan
}

// Check refuses more nodes than a message may ask.
func (l *PlanMessage) Check() error {
	if len(l.Planners) > MaxPlanners {
		return fmt.Errorf("message to %d nodes, at most %d", len(l.Planners), MaxPlanners)
	}
	return nil
}
