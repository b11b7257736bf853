package engine

// infoCommand reads what the shard tells of itself.
type infoCommand struct {
	Digest bool // with the digest of the state, which takes a look at every task
}

func (*infoCommand) op() uint64 { return opInfo }

func (*infoCommand) size() int { return 16 }
