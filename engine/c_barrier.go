package engine

// settleCommand asks what became of the batch before it in its lane, which shall not be decided any more. The answer's data
// is the answers of that batch if they are recorded; nil = it never was, and never will be.
type settleCommand struct{ Number uint64 }

func (*settleCommand) op() uint64 { return opSettle }

func (*settleCommand) size() int { return 16 }

// settles returns the command of a batch that settles another.
func (b *batch) settles() *settleCommand {
	if len(b.commands) != 1 {
		return nil
	}
	c, _ := b.commands[0].(*settleCommand)
	return c
}
