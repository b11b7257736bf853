package engine

// planCommand asks a node that has the behavior's code where and when a task belongs, and with Merge what the parameters
// of a second submit come to.
type planCommand struct {
	Behavior string
	Params   []byte
	Merge    bool
	Stored   []byte
}

func (*planCommand) op() uint64 { return opPlan }

func (c *planCommand) size() int { return 96 + len(c.Params) + len(c.Stored) }
