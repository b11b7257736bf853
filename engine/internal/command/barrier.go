package command

// Barrier asks what became of the batch before it in its lane, which shall not be decided any more. The answer's data
// is the answers of that batch if they are recorded; nil = it never was, and never will be.
type Barrier struct{ Number uint64 }

func (*Barrier) Op() uint64 { return opBarrier }

func (*Barrier) Size() int { return 16 }

func (*Barrier) Limits() error { return nil }

// Barrier returns the command of a batch that is a barrier; nil for any other batch.
func (b *Batch) Barrier() *Barrier {
	if len(b.Commands) != 1 {
		return nil
	}
	c, _ := b.Commands[0].(*Barrier)
	return c
}
