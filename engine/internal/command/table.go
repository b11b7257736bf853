package command

// Table makes an empty command of each number; nil stands for a number that no command has.
type Table []func() Command

// Empty makes an empty command, as a Table has it.
func Empty[T any, P interface {
	*T
	Command
}]() Command {
	return P(new(T))
}

// New returns an empty command of that number; nil when there is none.
func (t Table) New(op uint64) Command {
	if op >= uint64(len(t)) || t[op] == nil {
		return nil
	}
	return t[op]()
}
