package command

// Plan asks a node that has the behavior's code where and when a task belongs, and with Merge what the parameters
// of a second submit come to.
type Plan struct {
	Behavior string
	Params   []byte
	Merge    bool
	Stored   []byte
}

var _ = register(opPlan, func() Command { return new(Plan) })

func (*Plan) Op() uint64 { return opPlan }

func (c *Plan) Size() int { return 96 + len(c.Params) + len(c.Stored) }
