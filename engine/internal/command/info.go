package command

// Info reads what the shard tells of itself.
type Info struct {
	Digest bool // with the digest of the state, for which every task is read
}

var _ = register(opInfo, func() Command { return new(Info) })

func (*Info) Op() uint64 { return opInfo }

func (*Info) Size() int { return 16 }
