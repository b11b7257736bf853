package engine

// handOverCommand asks the owner to give the shard to a node that is ready to serve it.
type handOverCommand struct{ Node string }

func (*handOverCommand) op() uint64 { return opHandOver }

func (*handOverCommand) size() int { return 64 }
