package command

// HandOver asks the owner to give the shard to a node that is ready to serve it.
type HandOver struct{ Node string }

func (*HandOver) Op() uint64 { return opHandOver }

func (c *HandOver) Size() int { return 64 + len(c.Node) }

func (c *HandOver) Limits() error { return limitNode(c.Node) }
